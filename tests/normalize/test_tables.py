"""Slices behind a Gather from a constant table."""

from __future__ import annotations

from splitter.normalize.tables import slice_tables
from tests.normalize.support import model_of, ops, run_passes, same


def test_columns_of_a_gathered_table_get_tables_of_their_own() -> None:
    model = model_of(
        """g (int64[1,3] i) => (float[1,3,2] centers, float[1,3,2] sizes)
        <float[4,4] table = {0.1,0.2,5,5, 0.3,0.4,5,5, 0.5,0.6,5,5, 0.7,0.8,5,5},
         int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}>
        {
            rows = Gather (table, i)
            centers = Slice (rows, zero, two, two)
            sizes = Slice (rows, two, four, two)
        }"""
    )
    made = run_passes(model, slice_tables)
    assert ops(made).get("Gather") == 1, "all rows of the second table are equal"
    assert "Slice" not in ops(made)
    assert same(model, made)
