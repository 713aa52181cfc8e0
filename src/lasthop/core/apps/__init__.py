"""What administrators keep at the gateway for each app: devices, credentials, behaviour."""
