package extractive

import "strings"

// The improved method (x1) widens the patterns of x0 and adds a few. Each
// group below is one general observation about talk, with its reason.
const (
	// Agreement says nothing by itself: "Exactly.", "That's exactly it".
	xAgree = `^(?:(?:yes|yeah|yep|yup|right|ah|oh|ok(?:ay)?|haha)[,.!]* )*(?:exactly|that's exactly|precisely|absolutely|always)(?:[.!,]| that\b| it\b| what\b| the\b|$)`

	// Limits and prohibitions as people type them.
	xAbs = `\b(?:we|i|you|they) (?:can't|cannot|won't|will not|may not|must not)\b|\b(?:nothing|anything|nobody) (?:in|under|from|below|inside|else|outside|may|gets|should)\b|\b(?:every|each) time\b|\bwhenever\b|\bmay only\b|\bmax(?:imum)?\b|\b(?:remember|don't forget) to\b|\bkeep in mind\b|\b(?:is|are)n't allowed\b|\b(?:does|do) not allow\b|\b(?:doesn't|don't) allow\b|\bas a rule\b|\bby convention\b|\bnext time\b|\bopt-(?:in|out)\b|\bstays? the same\b|\bnot acceptable\b|\b(?:can't|cannot) (?:change|move|break|touch|exceed|depend|rely)\b|\b(?:important|crucial|critical|essential|vital) (?:that|to)\b|\bno more [\w-]+|^no\b.*\bplease[.!]*$|\bso no [\w-]+`

	// Where a statement holds: in this project, in all texts, before each step.
	xScope = `\b(?:in|for|across) (?:this|our) (?:project|repo|repository|codebase|team|company|app|package|module|service)\b|\baround here\b|\bbefore (?:you|any|anyone|touching|changing|editing|merging|deleting|installing)\b`

	// All of them, said with an order.
	xEvery = `\b(?:in|for|on|across) (?:all|every|any)\b`

	// The strong half of abs: a sentence that commands or forbids.
	xRule = `\b(?:never|always|must|mustn't|forbidden|prohibited|mandatory|at most|no more than|not allowed|has to|have to|under no circumstances|no exceptions?|every time|whenever|may only|can only)\b|(?:^|[,;:(—–-] ?|\b(?:and|but|so|then|please|just) )(?:don't|do not)\b`

	// A decision told as a plan of the group, and one taken back.
	xDecide = `\b(?:we|i)(?:'re| are|'m| am|'ll| will)? (?:now )?(?:going with|go with|sticking (?:with|to)|stick (?:with|to)|settling on)\b|\bwe(?:'re| are) (?:now |only |just )?(?:not going to|going to (?:use|keep|drop|stay|support)|moving|switching|dropping|changing|keeping|removing|replacing|migrating|retiring|freezing|adopting|standardi[sz]ing|deprecating|phasing|targeting)\b|\bwe (?:changed|keep|drop)\b|\bconsensus\b|\bwe settle\b|\bwe have an? (?:[\w-]+ )?(?:rule|policy|convention|standard|agreement)\b|\bchange of plans?\b|\bchanged (?:my|our) minds?\b|\bforget (?:what|about) (?:i|we|the)\b|\bscra(?:p|tch) (?:that|it)\b|\bno longer (?:appl|want|maintain|valid|true)\w*|\b(?:out of|in) scope\b|\bnon-negotiable\b|\bby design\b`

	// Other people's demands carry authority; so does ownership.
	xWho = `\b(?:customers?|clients?|legal|lawyers?|qa|ops|security|compliance|finance|mobile|product|marketing|designers?|reviewers?|management|partners?|contract) (?:department |team )?(?:really )?(?:insists?|asked|requires?|wants?|needs?|demands?|does not|doesn't|can't|won't|expects?|relies|rely|depends?)\b|\bowned by\b|\bbelongs? to\b|\bmaintained by\b|\bpromised\b|\b(?:talked|spoke|spoken|cleared (?:it|this)) (?:with|to)\b|\bdecides (?:about|on|what|which|whether)\b|\bgo(?:es)? through\b`

	// A rejection or a repeated order.
	xCorr = `^(?:(?:h+m+|sorry|oh|ah|wait|ok(?:ay)?|well|please|but|um+|uh)[,.!]* )*(?:no\b|nope\b|nah\b|wrong\b|rather not\b|put (?:it|that|them) back\b|revert\b|undo\b|not needed\b|not necessary\b|th(?:at|is|at's|ose|ese) (?:(?:is|are|isn't|aren't) )?(?:not|wrong)\b)|\bi (?:already )?(?:said|told you|meant)\b|\bas i (?:said|mentioned)\b|\byou must not\b|\bit's actually\b|\byou (?:misunderstood|misread)\b|^you(?:'re| are) [\w' ]*\bwrong\b|\b(?:is|are|it's|that's) (?:way |a bit |much |far )?too \w+`

	// Wishes and needs of the group.
	xShould = `\b(?:we|i) need (?:it|this|that|them|the [\w-]+|every\w*|all [\w-]+|each [\w-]+|(?:a|an) [\w-]+ (?:that|which|for)) |\b(?:we|it|this|that|they) needs? to (?:keep|stay|support|be|have|work|handle|avoid|preserve|run|match)\b|\bno need (?:to|for)\b|\bnot needed\b|\b(?:we|you) don't need\b|\bi'd like (?:the|all|every|each|both) [\w-]+(?: [\w-]+)? to\b|\bwould need to\b|\bwhat we need\b|\b(?:make|be) sure (?:that|we|this|nobody|no|none|every|each|all)\b`

	// What a preference sounds like besides "prefer".
	xPref = `\b(?:i|we) (?:don't|do not) (?:really )?(?:want|like|need|care)\b|\bi'd rather\b|\bi (?:really )?(?:like|love)\b[^.?!]{1,40}\b(?:more|better|over|than)\b|\b(?:i|we)(?:'d| would) (?:go|stick) with\b|\bi (?:find|hate|dislike)\b|\bnot a fan\b|\bmy (?:vote|preference|choice)\b|\bi (?:vote|opt) for\b`

	// A cause that a person found.
	xRoot = `\bfound (?:it|the (?:bug|cause|problem|issue|reason|culprit))\b|\bturns out\b|\b(?:that's|that is|this is|which is) why\b|\b(?:failed|broke|crashed|happened) because\b|^(?:so )?it (?:fails|breaks|crashes|hangs|happens) because\b|\bwhat's wrong\b|\bknow why\b|\bthe reason (?:it|why|that|this|for|we)\b`

	// A consequence that was felt is a reason.
	xReason = `\b(?:has|have|had) (?:already )?(?:bitten|burned|burnt|hurt)\b|\b(?:bit|burned|melted|killed) (?:us|the)\b|\bbreaks\b|\bworse than\b|\brely on\b|\bmess(?:es|ed)? up\b|, so \w+`

	// Thinking aloud.
	xHedge = `\b(?:i'm|i was|i am|been) (?:thinking|wondering|imagining|curious)\b|\bthinking (?:of|aloud)\b|\bi (?:don't|do not) (?:understand|know|get|see)\b|\bit'd\b|\bthat'd\b|\bfeels?\b|\b(?:now it|it(?: now| still)?) says\b|\bsays (?:the|that|it)\b|\bsomeday\b|\bat some point\b|\bsee how\b|\bin theory\b|\bmakes me\b|\bassumed\b|\bnice to\b|\bcurious\b`

	// A step bound to this moment.
	xOnce = `\b(?:this time|just (?:this )?once|for this (?:one|pr|commit|time))\b|\b(?:first|again)[.!]*$`

	// A prediction is no demand: "that should work now", "I should have it".
	xExpect = `\b(?:if|whether) (?:we|it|this|that|you|they|i|there) should(?:n't)?\b|\b(?:it|that|this|everything|which|they|i|you|we|tests) should(?:n't)? (?:now |all |just |probably |then |still )*(?:have (?:been|those|it|the|that|a)|work|do it|do the trick|fix|help|suffice|take|be (?:fine|ok(?:ay)?|good|enough|able|done|ready|fixed|easy|clear|in place|possible|mergeable|safe|there))\b`

	// A request in the form of a question.
	xPolite = `^(?:(?:please|ok(?:ay)?|so|and|also|hey|then)[,]? )*(?:can|could|would|will) (?:you|we) (?:please )?(?:always|never|not|stop|avoid|only|use|keep|make sure)\b`

	// A hypothesis holds no decision.
	xIf = `^(?:(?:and|so|but|or)[,]? )*(?:if|when|suppose) (?:we|i)\b`

	// "Is always": how something behaves, not a rule.
	xBehaves = `\b(?:is|are|it|its|it's|which|that|they|was|were|basically) (?:\w+ly )?(?:always|never|only)\b|\bi (?:always|never|only)\b|\bworks\b`

	// Laughter and such.
	xLaugh = `^(?:ha(?:ha)*|lol|hehe|wow|yay|whoa|oof|phew)\b`

	// A question whose answer settles something, against "shall I go on?".
	xFork = `\bor\b|\bwhich\b|\bprefer\w*\b|\bshould\b|\bwhat (?:should|is|are|do|would|about|value)\b|\bhow (?:should|many|long|much|do you)\b|\boptions?\b|\bapproach\b|\bwhat'?s your\b`
	// And what only asks for leave to go on.
	xOffer = `\bready to\b|\b(?:shall|should) (?:i|we) (?:continue|proceed|start|commit|push|merge|go ahead|run|open)\b|\bwant me to (?:continue|proceed|start|commit|push|merge|go ahead|run|open|adjust|look|check)\b|\bwhat are we\b|\bwhat's on your mind\b`

	// Verbs after "let's" and "want to" that name a step, besides wLetsSteps.
	xSteps = `adjust update create cut branch rebase clean cleanup finish wrap implement work step pause call chat hop walk recap sync get prepare open close kick rerun restart retry resume redo verify validate understand research list read play ask hold hear dig resolve address tackle tag release publish deploy build squash know learn rewrite revert come install tidy ship write`
	// Verbs of a state, after "we don't": no practice.
	xStates = `actually necessarily have know think see need want get seem even really currently yet understand remember care believe expect mind find test`
)

// Words in front that carry nothing, cut off a person's sentence.
const xFiller = `^(?:(?:hey|hi|hello|btw|by the way|fyi|oh|ah|h+m+|u+m+|uh|well|look|listen|one (?:more )?thing)[,:]* +)+`

// A question typed without its mark.
const xAsk = `^(?:(?:and|so|but|ok(?:ay)?|also|wait)[,]? )*(?:(?:do|does|did|is|are|was|were|can|could|should|would|will|has|have|isn't|aren't|doesn't|don't|shouldn't|won't|can't) (?:we|i|you|it|this|that|there|they|the|these|those|my|our|your)\b|(?:what|why|how|where|who|when) ?(?:'s|is|are|do|does|did|would|should|can|could|about|happens|happened|will|was|were|come)\b|(?:how|what) (?:many|much|far|kind|else)\b|which (?:one|of|version|file)\b)`

// The label of a pasted review comment.
const xLabel = `^(?:nit|minor|low|medium|high|critical|major)(?: severity| priority)?[:.]`

// A command for this moment.
const xStep = wPre + `(?:run|rerun|commit|push|pull|open|close|build|test|deploy|start|read|merge|rebase|squash|retry|try|generate|fix|undo|resolve|redo|check out)\b`

// "Not" in front corrects when it names the other place, way or thing; "not a
// bug per se" and "not bad" do not.
const xNot = `^not (?:as|in|on|at|the|that|this|those|there|here|just|only|needed|necessary|acceptable|with|for|like|by|to|from|via|\w+ly|["'])`

// Put off.
const xDefer = `\bi have no idea\b|^no idea\b|\bwe'll see\b|\bsee later\b|\b(?:another|some other) time\b|\b(?:have|need) to (?:think|ask|check|discuss)\b|\b(?:think about|discuss|clarify|park) (?:it|that|this)\b|\blet's wait\b|\bi'll (?:think|ask|get back|let you know|tell you)\b`

// What an assistant reports when the work is done.
const xReport = `\b\d+ (?:of \d+ )?(?:files?|tests?|commits?|insertions|lines|issues|warnings|packages|occurrences|imports|tasks)\b|\btests? (?:all )?(?:now )?pass\w*\b|\bgreen\b|\blint\b|\bfiles changed\b`

// What x1 puts in place of the verbs of a preference: "I like it." praises.
const (
	prefVerbs  = `prefer|want|insist|require|like (?:it|that|option|the|how|having)`
	xPrefVerbs = `prefer|insist|require|like (?:it (?:when|if|better|more)|that (?:we|the|it|you|this)|option|having|to have)|want (?:it|the|them|this|that|these|a|an|no|all|every|only|max)\b`
)

// "Agreed" opens a recap with a colon only; with a comma it acknowledges.
const xRecap = `^agreed\b[^.?!:—–,]{0,70}:`

// Verbs behind "would" that wish or need, and do not hedge.
const xWishes = `like need prefer rather want`

const (
	xWould = `\bwould (\w+)`
	xWant  = `\b(?:i|we)(?:'d| would)? (?:do |really |personally |explicitly |rather |much |still |just |also )*want (?:you )?(?:to )?(\w+)`
	xLets  = `(?:\blet's|(?:^|[.,;:!—–-] ?|\b(?:so|ok|okay|then|and|yes|yeah|yep|please|but|sure|no|now) )lets) (?:just |also |please |then |first |completely |really |maybe |now )*([a-z]+)`
	xHabit = `\bwe (?:don't|do not) (\w+)`
)

// loose makes the apostrophe of common contractions optional, as people leave
// it out when they type fast.
func loose(p string) string { return looseReplacer.Replace(p) }

var looseReplacer = strings.NewReplacer(
	"n't", "n'?t", "that's", "that'?s", "i'm", "i'?m", "i've", "i'?ve", "it's", "it'?s",
	"you're", "you'?re", "i'd", "i'd", "what's", "what'?s",
)

// or joins patterns.
func or(ps ...string) string { return strings.Join(ps, "|") }
