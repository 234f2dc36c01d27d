package export

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Reasons of the column `excluded`, and of what a trainer's file leaves out beside it.
const (
	exTruncated = "truncated_prompt" // the server cut the prompt
	exCut       = "cut_reply"        // finish_reason length
	exFormat    = "format"           // the reply could not be read
	exRefused   = "refused"          // the candidate lost a fact or repeated the instructions
	exPending   = "pending"          // not decided yet
	exSettled   = "nothing_asked"    // empty, Mneme's own words, or nothing that may be evidence
	exWording   = "unknown_wording"  // a prompt version that this program does not have
	exKnown     = "nothing_new"      // the built-in policy found what helps, and knew it

	skipNoLabel   = "no_label"       // nobody said what is right
	skipDisagrees = "disagrees"      // the label says otherwise
	skipAgrees    = "no_wrong_one"   // a pair needs a wrong answer
	skipNoAnswer  = "no_right_one"   // and a right one to the same prompt
	skipJSON      = "format_in_json" // an unreadable reply to a prompt that asked for JSON
)

// writing is an export under way.
type writing struct {
	e        *Exporter
	s        *Snapshot
	o        *Options
	report   Report
	progress func(int)
	index    int64 // of verl's rows
	from     part
	mask     *masker
	texts    *texts
	zstd     *compressor
	pages    string // folder of pages that wait for their row group

	gates *table[GateRow]
	sft   *table[SFTRow]
	pc    *table[SFTPCRow]
	kto   *table[KTORow]
	ktoF  *table[KTOFlatRow]
	dpo   *table[DPORow]
	dpoF  *table[DPOFlatRow]
	verl  *table[VerlRow]
	all   []anyTable
}

type anyTable interface {
	skip(reason string)
	end() error
	finish() (FileInfo, error)
	abandon()
}

func start[T any](w *writing, dir, name string, into **table[T]) error {
	t, err := newTable[T](dir, name, w.s.ID, w.pages, w.zstd)
	if err != nil {
		return err
	}
	*into = t
	w.all = append(w.all, t)
	return nil
}

func (w *writing) open(dir string) (err error) {
	w.zstd = newCompressor()
	if w.pages, err = os.MkdirTemp(dir, ".pages-*"); err != nil {
		return fault.As(fault.Unavailable, err)
	}
	for _, name := range w.o.files() {
		switch name {
		case Gates:
			err = start(w, dir, name, &w.gates)
		case SFT:
			err = start(w, dir, name, &w.sft)
		case SFTPC:
			err = start(w, dir, name, &w.pc)
		case KTO:
			err = start(w, dir, name, &w.kto)
		case KTOFlat:
			err = start(w, dir, name, &w.ktoF)
		case DPO:
			err = start(w, dir, name, &w.dpo)
		case DPOFlat:
			err = start(w, dir, name, &w.dpoF)
		case VerlRL:
			err = start(w, dir, name, &w.verl)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *writing) abandon() {
	for _, t := range w.all {
		t.abandon()
	}
	_ = w.clean() // what is left has names that nobody reads
}

func (w *writing) clean() error {
	if w.pages == "" {
		return nil
	}
	if err := os.RemoveAll(w.pages); err != nil {
		return fault.As(fault.Unavailable, err)
	}
	return nil
}

func (w *writing) finish() error {
	w.report.Files = []FileInfo{}
	for _, t := range w.all {
		if err := t.end(); err != nil {
			return err
		}
	}
	for len(w.all) > 0 {
		info, err := w.all[0].finish()
		if err != nil {
			return err
		}
		w.all = w.all[1:]
		w.report.Files = append(w.report.Files, info)
	}
	return w.clean()
}

// project writes one project's decisions.
func (w *writing) project(ctx context.Context, p *project) error {
	if !p.consent {
		return w.refused(ctx, p)
	}
	said, err := readOpinions(ctx, w.e.cfg.Log, p)
	if err != nil {
		return err
	}
	for _, family := range families(p.heads) {
		scores, err := w.compare(ctx, p, family, said)
		if err != nil {
			return err
		}
		for _, h := range family {
			open, restated, err := w.e.trajectories(ctx, p.name, h.Stream, eventlog.Head{Seq: h.Seq, Hash: h.Hash}, w.o, func(t *trajectory) error {
				return w.trajectory(ctx, p, h.Stream, t, said, scores)
			})
			if err != nil {
				return err
			}
			w.absent(absentOpen, open)
			w.absent(absentRestated, restated)
		}
	}
	return nil
}

func (w *writing) absent(reason string, n int) {
	if n > 0 {
		w.report.Absent[reason] += n
	}
}

// refused counts the decisions of a project that does not consent, and reads no text.
func (w *writing) refused(ctx context.Context, p *project) error {
	for _, h := range p.heads {
		_, _, err := w.e.trajectories(ctx, p.name, h.Stream, eventlog.Head{Seq: h.Seq, Hash: h.Hash}, w.o, func(t *trajectory) error {
			w.absent(absentConsent, len(t.turns))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rolloutKey names a rollout of a family.
type rolloutKey struct {
	stream string
	run    memory.SHA
}

// compare scores a family of several generations together; nil for a stream alone,
// whose groups have one member each.
func (w *writing) compare(ctx context.Context, p *project, family []Position, said *opinions) (map[rolloutKey]Scores, error) {
	if len(family) < 2 {
		return nil, nil
	}
	type group struct {
		keys     []rolloutKey
		rollouts []Rollout
	}
	groups := map[memory.SHA]*group{} // by part
	var order []memory.SHA
	for _, h := range family {
		_, _, err := w.e.trajectories(ctx, p.name, h.Stream, eventlog.Head{Seq: h.Seq, Hash: h.Hash}, w.o, func(t *trajectory) error {
			if t.regate() || t.run.Source == "" {
				return nil
			}
			r, err := w.e.rollout(ctx, p.name, h.Stream, t, said)
			if err != nil {
				return err
			}
			g := groups[t.run.Source]
			if g == nil {
				g = &group{}
				groups[t.run.Source] = g
				order = append(order, t.run.Source)
			}
			g.keys, g.rollouts = append(g.keys, rolloutKey{h.Stream, t.run.Run}), append(g.rollouts, r)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	out := map[rolloutKey]Scores{}
	for _, src := range order {
		g := groups[src]
		scores := make([]Scores, len(g.rollouts))
		for i := range scores {
			scores[i] = Score(g.rollouts[i])
		}
		Advantages(g.rollouts, scores)
		for i, k := range g.keys {
			out[k] = scores[i]
		}
	}
	return out, nil
}

// part is the source of a trajectory's chunks, as last read.
type part struct {
	project string
	source  memory.SHA
	chunks  []memory.Chunk
	gone    bool
}

// chunk is the chunk that a turn looked at, with its text; ok is false where it was
// erased.
func (w *writing) chunk(ctx context.Context, project string, t *trajectory, g *memory.Gate) (c memory.Chunk, ok bool, err error) {
	log, p := w.e.cfg.Log, &w.from
	if g.Level == memory.L2 {
		c = memory.Chunk{I: g.I, SHA256: g.Chunk}
	} else {
		source := t.run.Source
		if source == "" { // steps of several parts are asked again
			seg, err := log.Segment(ctx, project, memory.AdmitStream, g.Admit)
			if err != nil {
				return c, false, err
			}
			for _, r := range seg.Records {
				if a, is := r.(*memory.Admit); is {
					source = a.Source
				}
			}
		}
		if p.source != source || p.project != project {
			*p = part{project: project, source: source}
			if _, p.chunks, err = log.Part(ctx, project, source); fault.Is(err, fault.NotFound) {
				p.gone = true
			} else if err != nil {
				return c, false, err
			}
		}
		if p.gone || g.I < 0 || g.I >= len(p.chunks) || p.chunks[g.I].SHA256 != g.Chunk {
			return c, false, nil // a scrub put another in its place
		}
		c = p.chunks[g.I]
	}
	key := textKey{project, c.SHA256}
	if c.Text, ok = w.texts.Get(key); ok {
		return c, true, nil
	}
	b, err := log.Blob(ctx, project, c.SHA256)
	if fault.Is(err, fault.NotFound) {
		return c, false, nil
	}
	if c.Text = string(b); err == nil && len(b) <= longestOne {
		w.texts.Add(key, c.Text)
	}
	return c, err == nil, err
}

// trajectory writes the rows of one trajectory.
func (w *writing) trajectory(ctx context.Context, p *project, stream string, t *trajectory, said *opinions, scores map[rolloutKey]Scores) error {
	if len(t.turns) == 0 {
		return nil
	}
	split := splitOf(p.name, t.turns[0].g.QueryID) // a stream is of one question
	if w.o.Split != "" && split != w.o.Split {
		w.absent(absentSplit, len(t.turns))
		return nil
	}
	w.report.Gates += len(t.turns)
	w.report.Trajectories++
	roll, err := w.e.rollout(ctx, p.name, stream, t, said)
	if err != nil {
		return err
	}
	sc, ok := scores[rolloutKey{stream, t.run.Run}]
	if !ok {
		one := []Scores{Score(roll)}
		if t.regate() { // its steps are of several parts: no exit, no group
			one[0].Exit, one[0].Traj, one[0].outcome = nil, nil, labels.NotKnown
		}
		Advantages([]Rollout{roll}, one)
		sc = one[0]
	}
	w.count(&sc)
	last := (*int64)(nil)
	if !t.regate() {
		for i, s := range roll.Steps {
			if s.Evidence == Has {
				n := int64(i + 1)
				last = &n
			}
		}
	}
	for i := range t.turns {
		if err := ctx.Err(); err != nil {
			return fault.As(fault.Unavailable, err)
		}
		if err := w.turn(ctx, p.name, stream, t, i, said, &sc, last, split); err != nil {
			return err
		}
	}
	if w.progress != nil {
		w.progress(w.report.Gates)
	}
	return nil
}

func (w *writing) count(sc *Scores) {
	s := &w.report.Rewards
	for _, r := range sc.Update {
		if r != nil {
			s.Labelled++
			if *r > 0 {
				s.Right++
			}
		}
	}
	switch sc.outcome {
	case labels.Early:
		s.ExitEarly++
	case labels.Exact:
		s.ExitExact++
	case labels.Late:
		s.ExitLate++
	}
	if sc.Format != nil && *sc.Format == 0 {
		s.FormatBroken++
	}
}

// excludedOf is why no trainer should see a turn, "" where one may.
func excludedOf(g *memory.Gate, asked bool) string {
	switch {
	case g.TruncatedByServer:
		return exTruncated
	case g.FinishReason == "length":
		return exCut
	case refusedCodes[g.ReasonCode]:
		return exRefused
	case settledCodes[g.ReasonCode] || !asked:
		return exSettled
	case !g.FormatOK:
		return exFormat
	case g.Pending:
		return exPending
	case g.Model == "" && g.ReasonCode == nothingNew:
		return exKnown
	}
	return ""
}

// messages are a prompt as a chat; what it is made of is redacted.
func messages(p gru.Prompt) []Message {
	return []Message{{"system", p.System}, {"user", p.User}}
}

func sizeOf(ms ...[]Message) (n int) {
	for _, m := range ms {
		for i := range m {
			n += len(m[i].Role) + len(m[i].Content)
		}
	}
	return n
}

const answers = "assistant"

func answer(text string) []Message { return []Message{{answers, text}} }

// turn writes the rows of one decision.
func (w *writing) turn(ctx context.Context, project, stream string, t *trajectory, i int, said *opinions, sc *Scores, last *int64, split string) error {
	u, red := &t.turns[i], w.mask.of
	g := u.g
	mem := t.memoryOf(u)
	if g.Erased != "" || t.run.Erased != "" || mem.gone {
		w.absent(absentErased, 1)
		return nil
	}
	c, ok, err := w.chunk(ctx, project, t, g)
	if err != nil {
		return err
	}
	if !ok {
		w.absent(absentErased, 1)
		return nil
	}
	var raw, reasoning string
	if g.Reply != "" {
		body, err := w.e.cfg.Log.Blob(ctx, project, g.Reply)
		if fault.Is(err, fault.NotFound) {
			w.absent(absentErased, 1)
			return nil
		}
		if err != nil {
			return err
		}
		raw, reasoning, _ = content(body)
	}

	full := g.Model != "" && t.run.RewriteModel == ""
	json := strings.HasPrefix(g.PromptVersion, "j")
	version, known := gru.TagVersion(g.PromptVersion)
	asked := gru.Asked{Version: g.PromptVersion, Kind: gru.CallGate, Question: t.run.Question, Memory: mem.s, Chunk: &c, From: g.Start, To: g.End, BudgetTokens: t.run.MemoryBudget, Mask: w.mask.of}
	if full {
		asked.Kind = gru.CallDecide
	}
	if g.Model == "" {
		asked.Version = version
	}
	section := asked.Section()
	ex := excludedOf(g, section != "")
	if !known && ex == "" {
		ex = exWording
	}
	var own []Message // the prompt in the step's own wording
	if known && section != "" {
		p, err := asked.Prompt()
		if err != nil {
			return err
		}
		own = messages(p)
	}
	var done answerTo
	if ex == "" {
		done = complete(g, version, full, json, u.after.s, raw, reasoning)
		done.text = red(done.text)
	}
	prompt := own // of the completion
	if ex == "" && (done.version != asked.Version || done.kind() != asked.Kind) {
		if prompt, err = w.asAsked(asked, done.version, done.kind()); err != nil {
			return err
		}
	}
	v, labelled := said.best(stream, g.Chunk, g.Start, g.End)
	row := w.gateRow(project, stream, t, i, sc, split)
	row.Excluded, row.TagVersion = ex, version
	if labelled {
		fillLabel(&row, v)
	}
	row.LastStep = last
	if own != nil {
		row.PromptSystem, row.PromptUser = &own[0].Content, &own[1].Content
	}
	if g.Reply != "" {
		text, thought := red(raw), red(reasoning)
		row.RawOutput, row.RawReasoning = &text, &thought
	}
	row.Call = callGate
	if full {
		row.Call = callDecide
	}
	if done.text != "" {
		row.Completion, row.CompletionOf, row.Call = &done.text, done.of, done.call
	}
	if ex != "" {
		w.report.Excluded[ex]++
	}
	if w.gates != nil {
		size := 1024
		for _, s := range []*string{row.PromptUser, row.RawOutput, row.RawReasoning, row.Completion} {
			if s != nil {
				size += len(*s)
			}
		}
		if err := w.gates.add(row, size); err != nil {
			return err
		}
	}
	d := decision{
		w: w, g: g, row: &row, ex: ex, done: done, prompt: prompt, own: own, asked: asked, raw: row.RawOutput, json: json, right: sc.Update[i], labelled: labelled, evidence: v.Evidence, section: section,
		steps: len(t.turns),
		meta: Meta{
			ID: row.ID, Project: project, Level: row.Level, Stream: stream, QueryID: g.QueryID, PromptVersion: version, Call: row.Call, CompletionOf: done.of, Split: split, ExportID: w.s.ID,
		},
	}
	return errors.Join(d.toSFT(), d.toKTO(), d.toDPO(), d.toVerl())
}

// asAsked is the prompt of another wording or call about the same.
func (w *writing) asAsked(a gru.Asked, version string, kind gru.CallKind) ([]Message, error) {
	a.Version, a.Kind = version, kind
	p, err := a.Prompt()
	if err != nil {
		return nil, err
	}
	return messages(p), nil
}

// decision is one turn on its way into the trainers' files.
type decision struct {
	w           *writing
	g           *memory.Gate
	row         *GateRow
	meta        Meta
	ex          string
	done        answerTo
	prompt, own []Message
	asked       gru.Asked
	raw         *string // redacted
	json        bool
	right       *float64 // r_update
	labelled    bool
	evidence    bool
	section     string
	steps       int
}

// toSFT: decisions that a trainer may see, that have an answer, and that no label
// contradicts.
func (d *decision) toSFT() error {
	reason := d.ex
	if reason == "" && d.right != nil && *d.right < 0 {
		reason = skipDisagrees
	}
	for _, f := range []anyTable{tableOf(d.w.sft), tableOf(d.w.pc)} {
		if f != nil && reason != "" {
			f.skip(reason)
		}
	}
	if reason != "" {
		return nil
	}
	out, n := answer(d.done.text), sizeOf(d.prompt)+len(d.done.text)
	if d.w.sft != nil {
		if err := d.w.sft.add(SFTRow{append(d.prompt[:2:2], out...), d.meta}, n); err != nil {
			return err
		}
	}
	if d.w.pc != nil {
		return d.w.pc.add(SFTPCRow{d.prompt, out, d.meta}, n)
	}
	return nil
}

// tableOf is t as an interface that is nil where t is.
func tableOf[T any](t *table[T]) anyTable {
	if t == nil {
		return nil
	}
	return t
}

// toKTO: label is r_update > 0; a reply in tags that could not be read is a bad one.
func (d *decision) toKTO() error {
	if d.w.kto == nil {
		return nil
	}
	prompt, text, good, meta, reason := d.prompt, d.done.text, false, d.meta, d.ex
	switch {
	case d.ex == exFormat && d.json:
		reason = skipJSON
	case d.ex == exFormat && d.raw != nil && *d.raw != "" && d.own != nil:
		prompt, text, reason = d.own, *d.raw, ""
		meta.CompletionOf = ofRaw
	case d.ex == "" && d.right == nil:
		reason = skipNoLabel
	case d.ex == "":
		good = *d.right > 0
	}
	if reason != "" {
		d.w.kto.skip(reason)
		d.w.ktoF.skip(reason)
		return nil
	}
	out, n := answer(text), sizeOf(prompt)+len(text)
	if err := d.w.kto.add(KTORow{prompt, out, good, meta}, n); err != nil {
		return err
	}
	return d.w.ktoF.add(KTOFlatRow{append(prompt[:2:2], out...), good, meta}, n)
}

// toDPO: a pair has a wrong and a right answer to the same prompt, and both were given
// by somebody: by the gate and by the label that contradicts it. The two are written
// alike and differ in nothing but the check and the sentence that says it, so that
// neither length nor style is learnt. Of an unreadable reply, the reply is the wrong one.
func (d *decision) toDPO() error {
	if d.w.dpo == nil {
		return nil
	}
	prompt, reason, meta := d.prompt, d.ex, d.meta
	var chosen, rejected string
	switch {
	case d.ex == exFormat && d.json:
		reason = skipJSON
	case d.ex == exFormat && d.raw != nil && *d.raw != "" && d.own != nil:
		prompt, rejected, meta.CompletionOf = d.own, *d.raw, ofRaw
		switch {
		case !d.labelled:
			reason = skipNoLabel
		case d.asked.Kind == gru.CallGate:
			chosen, reason = verdict("", d.evidence, false), ""
		case d.evidence:
			reason = skipNoAnswer // the right answer would hold a memory that nobody wrote
		default:
			chosen, reason = gru.Verdict{Think: said(false)}.Render(gru.ShapeFull), ""
		}
	case d.ex == "" && d.right == nil:
		reason = skipNoLabel
	case d.ex == "" && *d.right > 0:
		reason = skipAgrees
	case d.ex == "":
		chosen, rejected = verdict("", d.evidence, d.g.Exit), verdict("", !d.evidence, d.g.Exit)
		meta.Call, meta.CompletionOf = callGate, ofRendered
		if d.done.call != callGate {
			var err error
			if prompt, err = d.w.asAsked(d.asked, d.meta.PromptVersion, gru.CallGate); err != nil {
				return err
			}
		}
	}
	if reason != "" {
		d.w.dpo.skip(reason)
		d.w.dpoF.skip(reason)
		return nil
	}
	n := sizeOf(prompt) + len(chosen) + len(rejected)
	if err := d.w.dpo.add(DPORow{prompt, answer(chosen), answer(rejected), meta}, n); err != nil {
		return err
	}
	return d.w.dpoF.add(DPOFlatRow{prompt, Message{answers, chosen}, Message{answers, rejected}, meta}, n)
}

// toVerl: prompts with a known answer. What the gate said does not matter: the policy
// that is trained answers anew.
func (d *decision) toVerl() error {
	if d.w.verl == nil {
		return nil
	}
	reason, prompt := d.ex, d.prompt
	if reason == exFormat || reason == exRefused || reason == exCut || reason == exPending {
		reason = "" // its prompt is sound
		var err error
		if prompt = d.own; d.json {
			if prompt, err = d.w.asAsked(d.asked, d.meta.PromptVersion, d.asked.Kind); err != nil {
				return err
			}
		}
	}
	if reason == "" && !d.labelled {
		reason = skipNoLabel
	}
	if reason == "" && prompt == nil {
		reason = exWording
	}
	if reason != "" {
		d.w.verl.skip(reason)
		return nil
	}
	truth := "no"
	if d.evidence {
		truth = "yes"
	}
	r := d.row
	context := d.w.mask.of(d.section)
	row := VerlRow{
		DataSource: "mneme/gate", Prompt: prompt, Context: context, Ability: "memory-gate", RewardModel: RewardModel{"rule", []string{truth}},
		ExtraInfo: ExtraInfo{
			Index: d.w.index, Split: r.Split, Question: r.Question, T: r.TStep, TotalT: int64(d.steps), Evidence: r.Evidence, LastEvidence: r.LastStep,
			LabelSource: *r.LabelSource, LabelConf: r.LabelConf, ID: r.ID, Project: r.Project, QueryID: r.QueryID, Level: r.Level, Call: r.Call, ExportID: r.ExportID,
		},
	}
	d.w.index++
	return d.w.verl.add(row, sizeOf(prompt)+len(context))
}

func fillLabel(row *GateRow, v labels.Verdict) {
	row.Evidence, row.LabelSource, row.LabelConf = &v.Evidence, &v.Kind, v.Confidence
	if v.Model != "" {
		row.LabelModel = &v.Model
	}
}

// gateRow is what a row has of the records alone.
func (w *writing) gateRow(project, stream string, t *trajectory, i int, sc *Scores, split string) GateRow {
	g, red := t.turns[i].g, w.mask.of
	r := GateRow{
		ID: project + "/" + stream + "/" + strconv.Itoa(g.T), ExportID: w.s.ID, Project: project, Level: string(g.Level), Stream: stream, QueryID: g.QueryID, Question: red(t.run.Question),
		RunID: string(g.Run), Trajectory: string(t.run.Run), Cause: t.run.Cause.Kind, Source: string(t.run.Source), EndedUS: t.ended.UnixMicro(),
		T: int64(g.T), TotalT: int64(g.TotalT), TStep: int64(i + 1), Admit: g.Admit, I: int64(g.I), Start: int64(g.Start), End: int64(g.End), More: g.More,
		ChunkSHA: string(g.Chunk), MemoryBeforeSHA: string(g.MemoryBeforeSHA), FrozenSHA: string(g.FrozenSHA), CandidateSHA: string(g.CandidateSHA), MemorySHA: string(g.MemorySHA),
		MemoryTokens: int64(g.MemoryTokens), ReplySHA: string(g.Reply),
		Update: g.Update, Opened: gru.Opened(g), Exit: g.Exit, ExitActed: g.ExitActed, FormatOK: g.FormatOK, Pending: g.Pending, Attempt: int64(g.Attempt),
		ReasonCode: g.ReasonCode, Reason: red(g.Reason), Think: red(g.Think), FinishReason: g.FinishReason, RegateOf: int64(g.RegateOf), Neutralised: g.Neutralised,
		Truncated: g.TruncatedByServer, Dropped: int64(g.EvidenceDropped), Ungrounded: int64(g.Ungrounded), Parallel: int64(g.Parallel),
		Score: g.Score, Policy: g.Policy, Model: g.Model, Adapter: g.Adapter, PromptVersion: g.PromptVersion,
		PromptTokens: int64(g.PromptTokens), PromptTokensOwn: int64(g.PromptTokensOwn), ReplyTokens: int64(g.CompletionTokens), LatencyMS: g.LatencyMS, CostUSD: g.CostUSD,
		RUpdate: sc.Update[i], RExit: sc.Exit, RFormat: sc.Format, RTraj: sc.Traj, ATraj: sc.ATraj, ATurn: sc.ATurn[i], Advantage: sc.Advantage[i], Alpha: Alpha,
		Split: split,
	}
	if s := g.Sampling; s != nil {
		n := int64(s.MaxTokens)
		r.Temperature, r.TopP, r.Seed, r.MaxTokens = &s.Temperature, &s.TopP, &s.Seed, &n
	}
	return r
}
