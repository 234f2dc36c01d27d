"""Reward of one gate answer for verl, on verl_rl.parquet of an export of Mneme:
custom_reward_function.path=reward_mneme.py custom_reward_function.name=compute_score

GRU-Mem (arXiv 2602.10560, Eq. 8 and 10) for one turn: +1 where the update gate agrees with
the label, else -1; and 1 for a reply that can be read, else 0. r_exit and the mix of turn
and trajectory advantages (alpha 0.9) are of whole trajectories, which verl's stock
advantage does not know: gates.parquet has them.
"""

import re

CHECK = re.compile(r"<check>\s*(yes|no)\s*</check>", re.I)
NEXT = re.compile(r"<next>\s*(continue|end)\s*</next>", re.I)


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if data_source != "mneme/gate":
        raise NotImplementedError(f"no reward for {data_source}")
    check, end = CHECK.findall(solution_str), NEXT.findall(solution_str)
    if len(check) != 1 or len(end) != 1:
        return {"score": -1.0, "r_update": -1.0, "r_format": 0.0}
    right = 1.0 if check[0].lower() == ground_truth[0] else -1.0
    return {"score": right + 1.0, "r_update": right, "r_format": 1.0}
