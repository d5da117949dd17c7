"""In which waves brokers may restart: pure computation over partitions' replicas and capacities."""
