"""Pages for people, served by the gateway itself: the dashboard, and a device in the browser.

The pages are plain files (`static/`), without a build step and without anything from elsewhere.
What they show comes from the REST door, from `views` and, live, from `live`; who may see it is
decided in `pages`, with `sessions` for those who have logged in.
"""
