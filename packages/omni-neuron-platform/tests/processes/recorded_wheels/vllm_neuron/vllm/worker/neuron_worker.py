from event_log import record


class NeuronWorker:
    def _patch_in_same_node_as_function(self):
        sizes = self.parallel_config
        record("same node", ranks_per_node=sizes.world_size_across_dp // sizes.nnodes)
