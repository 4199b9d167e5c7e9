"""ONNX operators as rule files in the dialect "onnx" speak of them."""
