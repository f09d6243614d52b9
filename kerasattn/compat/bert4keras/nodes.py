class Nodes:
    """Gives a layer Keras 2's `get_output_at`, for layers that are called more than once."""

    def get_output_at(self, node_index):
        """The symbolic output of one of its calls.

        Args:
            node_index: int, which call; -1 is the last.

        Raises:
            ValueError: if there was no such call.
        """
        nodes = self._inbound_nodes
        if not -len(nodes) <= node_index < len(nodes):
            raise ValueError(
                f"{self.name} was called {len(nodes)} times, there is no call {node_index}."
            )
        outputs = nodes[node_index].output_tensors
        return outputs[0] if len(outputs) == 1 else outputs
