"""Reward of one gate answer for verl, on verl_rl.parquet of an export of Mneme:
custom_reward_function.path=reward_mneme.py custom_reward_function.name=compute_score

GRU-Mem (arXiv 2602.10560, Eq. 8 and 10) for one turn: +1 where the update gate agrees with
the label, else -1; and 1 for a reply that the gate would read, else 0. r_exit and the mix of
turn and trajectory advantages (alpha 0.9) are of whole trajectories, which verl's stock
advantage does not know: gates.parquet has them.

What can be read is what Mneme's gate reads (shared/gru/reply.go), rule by rule, so that no
reply is rewarded which the gate would refuse. As there, text outside the tags is passed over.
"""

# What Go's strings.TrimSpace trims; str.strip() takes \x1c to \x1f too.
SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


class Malformed(ValueError):
    """A reply that the gate refuses."""


def behind_thought(content):
    """The reply behind its thought, whose opening tag a server may have kept."""
    at = content.find("<think>")
    if at < 0:
        _, tag, rest = content.partition("</think>")
        return rest if tag else content
    _, closed, rest = content[at + len("<think>"):].partition("</think>")
    if not closed:
        raise Malformed("<think> is not closed")
    if "<" in content[:at]:
        raise Malformed("a tag stands before <think>")
    return rest


def only(content, body, name):
    """The value of the one tag of a name, and where it ends in body. It is counted over the
    whole reply: a thought that holds a second one leaves open which is meant."""
    start, stop = f"<{name}>", f"</{name}>"
    if content.count(start) != 1 or content.count(stop) != 1:
        raise Malformed(f"not one <{name}> and one </{name}>")
    i, j = body.find(start), body.find(stop)
    if i < 0 or j < i:
        raise Malformed(f"<{name}> is not closed behind its opening")
    return body[i + len(start):j].strip(SPACE).lower(), j + len(stop)


def read(content, call):
    """Whether the update gate is open, by a reply to a call: gate (think, check, next) or
    decide (think, check, update, next). Raises Malformed."""
    body = behind_thought(content)
    check, check_end = only(content, body, "check")
    end, _ = only(content, body, "next")
    next_at = body.rfind("<next>")
    if next_at < check_end:
        raise Malformed("<next> stands before <check>")
    if check not in ("yes", "no"):
        raise Malformed("<check> is neither yes nor no")
    if end not in ("continue", "end"):
        raise Malformed("<next> is neither continue nor end")
    # The update is what stands between the first <update> and the last </update> before <next>.
    update, at = "", body.find("<update>")
    if at < 0 and "</update>" in body:
        raise Malformed("</update> without <update>")
    if at >= 0:
        stop = body[:next_at].rfind("</update>")
        if stop < at:
            raise Malformed("<update> is not closed before <next>")
        update = body[at + len("<update>"):stop].strip(SPACE)
        if call == "gate":
            raise Malformed("<update> in the reply of a gate")
        if at < check_end:
            raise Malformed("<update> stands before <check>")
    if call == "decide" and check == "yes" and not update:
        raise Malformed("check is yes and <update> is missing or empty")
    return check == "yes"


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    if data_source != "mneme/gate":
        raise NotImplementedError(f"no reward for {data_source}")
    call = (extra_info or {}).get("call")
    if call not in ("gate", "decide"):
        raise ValueError(f"extra_info names no call that is known: {call!r}")
    try:
        opened = read(solution_str, call)
    except Malformed:
        return {"score": -1.0, "r_update": -1.0, "r_format": 0.0}
    right = 1.0 if opened == (ground_truth[0] == "yes") else -1.0
    return {"score": right + 1.0, "r_update": right, "r_format": 1.0}
