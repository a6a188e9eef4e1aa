"""Found by processes that are spawned by one that called shardfeed.wds.install(): calls it, too.

Their sys.path is that of the process that spawns them, in which install() has put this folder.
"""

import sys

from shardfeed.wds import install

# The import that is running resumes with the module that install() puts in place of this one.
del sys.modules[__name__]
install()
