"""The last hop against Mosquitto and RabbitMQ: throughput, CPU, latency, bytes, memory.

Every broker, publisher and device is a process of its own. `comparison` tells the story; the
clients of the peers (`mqtt`, `amqp`) are raw protocols, so that the broker is the limit and not
the client.
"""
