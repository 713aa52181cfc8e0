"""`lasthop bench soak` and `lasthop bench hostile`: a gateway's process, watched from outside."""
