"""The methods of a device that an application calls, by subject: `client.Device` has all of
them."""
