"""What an application can do with a device, by subject: `client.Device` is all of it."""
