"""Pages for people, served by the gateway itself: the dashboard, and a device in the browser.

The pages are plain files (`static/`), without a build step and without anything from other hosts.
What they show comes from the REST door, from `views` and, live, from `live`; access is decided in
`pages`, with `sessions` for people who have logged in.
"""
