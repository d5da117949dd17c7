"""Sets of brokers or racks whose loss breaks partitions: which are minimal, and how likely k random failures include one."""
