"""The control plane of the exchange: commands that declare, delete, bind and show exchanges and queues."""
