"""Scores replies by docs/training/reward_mneme.py: a JSON list of {reply, call, truth} from
stdin, a list of what compute_score says to stdout."""

import json
import sys

sys.path.insert(0, sys.argv[1])
from reward_mneme import compute_score

json.dump([compute_score("mneme/gate", c["reply"], [c["truth"]], {"call": c["call"]}) for c in json.load(sys.stdin)], sys.stdout)
