"""Whether the result may be trusted: tensors, decisions, and one verdict from stated gates."""
