"""The commands of `kafka-durability`. Each imports its implementation when it runs."""
