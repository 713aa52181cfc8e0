"""The last hop compared with Mosquitto and RabbitMQ: throughput, CPU, latency, bytes, memory.

Every broker, publisher and device is a process of its own. `comparison` runs the rounds; the
clients of the other brokers (`mqtt`, `amqp`) speak the raw protocols, so that the broker is the
limit and not the client.
"""
