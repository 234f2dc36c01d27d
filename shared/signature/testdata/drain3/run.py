"""Holds Drain3 against a folder of labelled logs, as `mem sig bench` holds the
signature: a log's identity is the set of templates of its error lines (all
lines, with --all), after one pass over all logs in the manifest's order, and
again after a second pass. Prints one JSON object.

    python run.py FOLDER        FOLDER holds manifest.json
"""
import json
import os
import re
import sys
import time

from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig
from drain3.masking import MaskingInstruction

ERROR = re.compile(r"(?i)\b(?:err(?:or)?|fail(?:ed|ure)?|fatal|panic(?:ked)?|exception|cannot|not found|denied|refused|undefined|unhealthy|killed)\b|ERR!")
STAMP = re.compile(r"^(?:\d{4}-\d\d-\d\dT[\d:.]+Z? |\[[\d:TZ.-]+\] |\d\d:\d\d:\d\d {1,2})")
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def miner():
    c = TemplateMinerConfig()  # the defaults of its example: sim_th 0.4, depth 4
    c.masking_instructions = [
        MaskingInstruction(r"((?<=[^A-Za-z0-9])|^)(([0-9a-f]{2,}:){3,}([0-9a-f]{2,}))((?=[^A-Za-z0-9])|$)", "ID"),
        MaskingInstruction(r"((?<=[^A-Za-z0-9])|^)(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})((?=[^A-Za-z0-9])|$)", "IP"),
        MaskingInstruction(r"((?<=[^A-Za-z0-9])|^)([0-9a-f]{6,} ?){3,}((?=[^A-Za-z0-9])|$)", "SEQ"),
        MaskingInstruction(r"((?<=[^A-Za-z0-9])|^)(0x[a-f0-9A-F]+)((?=[^A-Za-z0-9])|$)", "HEX"),
        MaskingInstruction(r"((?<=[^A-Za-z0-9])|^)([\-\+]?\d+)((?=[^A-Za-z0-9])|$)", "NUM"),
    ]
    return TemplateMiner(config=c)


def main():
    folder, everything = sys.argv[1], "--all" in sys.argv
    rows = json.load(open(os.path.join(folder, "manifest.json")))
    logs, size = [], 0
    for r in rows:
        b = open(os.path.join(folder, r["file"]), "rb").read()
        size += len(b)
        lines = [STAMP.sub("", ANSI.sub("", l)).strip() for l in b.decode("utf-8", "replace").splitlines()]
        logs.append([l for l in lines if l and (everything or ERROR.search(l))])
    tm = miner()
    start = time.process_time()
    first = [frozenset(tm.add_log_message(l)["template_mined"] for l in log) for log in logs]
    took = time.process_time() - start
    after = []
    for log in logs:
        templates = set()
        for l in log:
            m = tm.match(l)
            templates.add(m.get_template() if m else l)
        after.append(frozenset(templates))

    def failure(f):
        name = os.path.basename(f).removeprefix("wrapped_")
        return name.rsplit(".", 2)[0] if name.count(".") > 1 else name.rsplit(".", 1)[0]

    out = {"logs": len(rows), "mb_per_s": round(size / 1e6 / took, 2)}
    for name, ids in (("as_read", first), ("after_all", after)):
        pairs = stable = differ = same = 0
        for i in range(len(rows)):
            for j in range(i + 1, len(rows)):
                a, b = rows[i], rows[j]
                if a["group"] == b["group"] and a["tool"] == b["tool"]:
                    pairs += 1
                    stable += ids[i] == ids[j] and bool(ids[i])
                if b["group"] in a["differs_from"] or b["file"] in a["differs_from"] or a["group"] in b["differs_from"] or a["file"] in b["differs_from"]:
                    differ += 1
                    same += ids[i] == ids[j]
        out[name] = {"pairs": pairs, "pairs_stable": stable, "differ": differ, "collisions": same}
    changed = sum(a != b for a, b in zip(first, after))
    out["logs_whose_identity_changed"] = changed
    print(json.dumps(out))


main()
