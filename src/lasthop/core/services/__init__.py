"""Services that devices offer, and requests that gather answers."""
