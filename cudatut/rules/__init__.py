"""What an example, an exercise and a kernel of the book have to be: each rule once, by reading alone.

The rules for pages are in `cudatut.site.judge`; `cudatut.authoring.check` asks all of them about one chapter, and the tests
ask the same of the whole book. A rule returns `Finding`s: one sentence each, with the place and the cure.
"""
