"""Whether the delegate really took a part: counted in the runtime's own node table.

A delegated run is a DELEGATE node that stands beside the nodes it replaces; the replaced ones are
those between its inputs and its outputs. The vendor converter's NeutronGraph node holds many
operators, so the share is taken of what is left on the CPU.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NPU_NODES = ("NeutronGraph", "ethos-u", "edgetpu-custom-op")


@dataclass(frozen=True)
class Placement:
    """nodes in the file, those that the delegate took, its partitions, and what is left."""

    nodes: int
    taken: int
    partitions: int
    npu_nodes: int
    left: Mapping[str, int]

    def refusal(self, operators: int) -> str:
        """Why this does not count as delegated; "" when it does.

        operators: of the part before the vendor's converter, from the manifest.
        """
        on_cpu = sum(self.left.values())
        if not self.taken:
            return f"the delegate took 0 of {self.nodes} nodes"
        kept = [name for name in self.left if name in NPU_NODES]
        if kept:
            return f"the delegate left {', '.join(kept)} behind"
        if 2 * on_cpu > operators:
            return f"{on_cpu} nodes stay on the CPU, the part had {operators} operators"
        return ""

    def __str__(self) -> str:
        text = f"the delegate took {self.taken} of {self.nodes} nodes"
        text += f" in {self.partitions} partition{'s' if self.partitions != 1 else ''}"
        if self.npu_nodes:
            text += f" ({self.npu_nodes} made by the vendor's converter)"
        if self.left and self.taken:
            rest = ", ".join(f"{count} {name}" for name, count in sorted(self.left.items()))
            text += f"; on the CPU: {rest}"
        return text


def count_placement(interpreter: Any) -> Placement:
    """What the allocated interpreter's delegate took."""
    nodes = interpreter._get_ops_details()
    delegates = [node for node in nodes if node["op_name"] == "DELEGATE"]
    plain = [node for node in nodes if node["op_name"] != "DELEGATE"]
    taken = _between(plain, delegates)
    left = Counter(str(node["op_name"]) for i, node in enumerate(plain) if i not in taken)
    npu = sum(node["op_name"] in NPU_NODES for node in plain)
    return Placement(len(plain), len(taken), len(delegates), npu, dict(left))


def _between(plain: Sequence[Any], delegates: Sequence[Any]) -> set[int]:
    producer = {int(t): i for i, node in enumerate(plain) for t in node["outputs"] if t >= 0}
    found: set[int] = set()
    for node in delegates:
        border = {int(t) for t in node["inputs"]}
        stack = [int(t) for t in node["outputs"]]
        while stack:
            tensor = stack.pop()
            index = producer.get(tensor)
            if tensor in border or index is None or index in found:
                continue
            found.add(index)
            stack.extend(int(t) for t in plain[index]["inputs"] if t >= 0)
    return found
