"""What the DAGs are made of: a hook for Kafka Connections and one thin operator per step of an audit."""
