"""Renders chat templates by jinja2, for templates.ts. Reads {"templates": [...], "contexts": [...]} from stdin; writes for
each template and context {"text": ...}, with "error" where it fails."""

import json
import os
import sys

sys.path.append(os.path.join(os.path.dirname(__file__), "../test/template/golden"))
from make import render  # noqa: E402

task = json.load(sys.stdin)
json.dump([[render(source, context) for context in task["contexts"]] for source in task["templates"]], sys.stdout)
