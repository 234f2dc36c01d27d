package endpoint

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/llm"
)

const (
	hintWindow = "shorten the prompt, or give the model a larger window: set OLLAMA_CONTEXT_LENGTH, or PARAMETER num_ctx N in a Modelfile (Ollama); --max-model-len N (vLLM)"
	hintVector = "leave this text out, or cut it differently; the model has no vector for it"
)

// What servers say in their own words, whatever the status.
var (
	saysWindow = lazy.MustCompile(`(?i)context (length|size|window)|maximum context|max_model_len|input length|prompt is too long|too many tokens`)
	saysModel  = lazy.MustCompile(`(?i)model .{0,120}(not found|does not exist|not exist)|(not found|unknown|invalid).{0,20} model|not a valid model|no such model|try pulling|model_not_found|no endpoints found`)
	saysNaN    = lazy.MustCompile(`(?i)\bNaN\b|unsupported value`)
	saysNoText = lazy.MustCompile(`(?i)no input provided`)
	saysCannot = lazy.MustCompile(`(?i)does not support ([a-z]+)`)
	saysBusy   = lazy.MustCompile(`(?i)busy|queue|overloaded|capacity`)
	saysQuota  = lazy.MustCompile(`(?i)insufficient_quota|insufficient credits`)
	saysMemory = lazy.MustCompile(`(?i)out of memory|requires more system memory|insufficient memory|cudaMalloc`)
	saysNumber = lazy.MustCompile(`\b[0-9]{2,9}\b`)
	shortCode  = lazy.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{1,63}$`)
)

// said is the error in a body, in any of the forms that servers use.
type said struct {
	text  string // never repeated: it may quote the prompt or the key
	code  string // a short identifier, or empty
	param string // the parameter that is at fault, or empty
}

func hear(body []byte) said {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"` // vLLM before 0.10, Kong
		Type    string          `json:"type"`
		Param   string          `json:"param"`
	}
	if json.Unmarshal(body, &top) != nil {
		return said{}
	}
	s := said{text: top.Message, code: top.Type, param: top.Param}
	var inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   string `json:"param"`
		Code    any    `json:"code"` // a string, a number or null
	}
	if json.Unmarshal(top.Error, &s.text) != nil && json.Unmarshal(top.Error, &inner) == nil {
		s = said{inner.Message, inner.Type, inner.Param}
		if code, ok := inner.Code.(string); ok && code != "" {
			s.code = code
		}
	}
	if !shortCode.MatchString(s.code) {
		s.code = ""
	}
	if !shortCode.MatchString(s.param) {
		s.param = ""
	}
	return s
}

// judge gives an answer outside 2xx its kind, and says whether the same request
// may be sent again.
func (c *Client) judge(status int, h http.Header, body []byte, model string) (error, bool) {
	s := hear(body)
	e := &fault.Error{Where: c.c.Name, RetryAfter: retryAfter(h, time.Now())}
	e.Msg = fmt.Sprintf("the server answers %d", status)
	if s.code != "" {
		e.Msg += " " + s.code
	}
	if s.param != "" {
		e.Msg += " about " + s.param
	}
	again := false
	switch status { // what a limit says in its words is about the account, not the request
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusPaymentRequired, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		if c.known(e, s, model) {
			return e, false
		}
	}
	switch {
	case status/100 == 3:
		e.Kind, e.Hint = fault.Invalid, "set the URL that is meant; redirects are not followed, so that the key goes nowhere else"
		e.Msg = fmt.Sprintf("the server answers %d and points somewhere else", status)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Kind = fault.Denied
		e.Hint = "look at the key and at how it is sent: auth is " + string(c.c.Auth) + " here (bearer, apikey or none)"
	case status == http.StatusPaymentRequired:
		e.Kind, e.Hint = fault.Exhausted, "the account has no credit left"
	case status == http.StatusNotFound:
		if s.text != "" && model != "" && !bare404(s.text) {
			c.missing(e, model)
			return e, false
		}
		e.Kind, e.Hint = fault.Invalid, "this server does not have what was asked for; look at the URL (an OpenAI form ends in /v1) and the kind of the endpoint"
	case status == http.StatusTooManyRequests:
		e.Kind, again = fault.Exhausted, !saysQuota.MatchString(s.code+" "+s.text)
		if !again {
			e.Hint = "the account's quota is used up"
		}
	case status == http.StatusServiceUnavailable && saysBusy.MatchString(s.text):
		e.Kind, again = fault.Exhausted, true
		e.Hint = "the server's queue is full: ask less at a time, or raise OLLAMA_MAX_QUEUE"
	case status == http.StatusInternalServerError && saysMemory.MatchString(s.text):
		e.Kind, e.Hint = fault.Unavailable, "the server has too little memory: take a smaller model or window"
	case status == http.StatusRequestTimeout, status == http.StatusInternalServerError, status == http.StatusBadGateway,
		status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		e.Kind, again = fault.Unavailable, true
	case status == 499, status >= 500: // 499: Ollama to a client that it takes for gone
		e.Kind = fault.Unavailable
	default:
		e.Kind, e.Hint = fault.Invalid, "the server refuses the request itself; its log says why"
	}
	return e, again
}

// known finds what a server says in words under any status.
func (c *Client) known(e *fault.Error, s said, model string) bool {
	text := s.code + " " + s.text
	text = text[:min(len(text), 400)] // what comes later is rather a quotation of the prompt
	switch {
	case saysModel.MatchString(text):
		c.missing(e, model)
	case saysWindow.MatchString(text):
		e.Kind, e.Hint, e.Msg, e.Err = fault.Invalid, hintWindow, "", llm.ErrWindow
		// Numbers are all that is repeated, and only those that can be token counts.
		if n := saysNumber.FindAllString(s.text, 3); n != nil {
			e.Err = fmt.Errorf("%w (the server names %s)", llm.ErrWindow, strings.Join(n, ", "))
		}
	case saysNaN.MatchString(text):
		e.Kind, e.Hint, e.Msg = fault.Invalid, hintVector, "the model's vector is not a number"
	case saysNoText.MatchString(text):
		e.Kind, e.Hint, e.Msg = fault.Invalid, hintVector, "the server takes the text for empty"
	case saysCannot.MatchString(text):
		what := strings.ToLower(saysCannot.FindStringSubmatch(text)[1])
		if len(what) > 20 {
			what = "this"
		}
		e.Kind, e.Msg = fault.Invalid, fmt.Sprintf("model %q does not support %s", model, what)
		e.Hint = "take another model, or turn the option off"
	default:
		return false
	}
	e.RetryAfter = 0
	return true
}

func bare404(text string) bool {
	return strings.EqualFold(strings.TrimSpace(text), "not found") || strings.Contains(text, "no Route matched")
}

func (c *Client) missing(e *fault.Error, model string) {
	e.Kind, e.Msg, e.RetryAfter = fault.NotFound, fmt.Sprintf("there is no model %q", model), 0
	if e.Hint = "look at the names that the server lists under /v1/models; a LoRA adapter has to be loaded there"; c.c.Kind == Ollama {
		e.Hint = "ollama pull " + model
	}
}

// InBand is the error of an answer that is a success by its status and an error
// by its content. The body is that of the error, as it would stand in a 500.
// The request was answered, so it is not sent again.
func (c *Client) InBand(body []byte, model string) error {
	s := hear(body)
	e := &fault.Error{Where: c.c.Name, Kind: fault.Unavailable, Msg: "the server reports an error inside its answer", Hint: "look at the server's log"}
	if s.code != "" {
		e.Msg += ": " + s.code
	}
	if !c.known(e, s, model) && saysBusy.MatchString(s.text) {
		e.Kind = fault.Exhausted
	}
	return marked(e)
}

// NotANumber is the error of a vector with NaN, an infinity or null in it.
func (c *Client) NotANumber() error {
	return fault.At(fault.Invalid, c.c.Name, hintVector, "the model's vector is not a number")
}

// Unreadable is the error of an answer that is not what its form says.
func (c *Client) Unreadable(what string) error {
	return fault.At(fault.Unavailable, c.c.Name, "look at the kind of the endpoint, and at what stands between it and the model", "the server's answer is unreadable: %s", what)
}

// unreached gives a failure of the network its kind. Its own text may quote what
// a server sent, so only the cause is named.
func (c *Client) unreached(err error) (error, bool) {
	again, sent, e := c.unreachedBy(err)
	if !sent {
		return notRun{e}, again
	}
	return e, again
}

func (c *Client) unreachedBy(err error) (again, sent bool, _ error) {
	e := &fault.Error{Kind: fault.Unavailable, Where: c.c.Name, Msg: "the connection failed"}
	var dns *net.DNSError
	var cert *x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.Is(err, errRefused):
		e.Kind, e.Msg, e.Hint = fault.Invalid, "the name leads to a link-local address, which is not called", "look at the endpoint's URL and at the name server"
		return false, false, e
	case errors.Is(err, errElsewhere):
		e.Kind, e.Msg, e.Hint = fault.Invalid, "the name leads to another machine", "configure the endpoint: without that only this machine is called"
		return false, false, e
	case errors.As(err, &dns):
		e.Msg, e.Hint = "the name of the server is not known", "look at the endpoint's URL"
		return dns.IsTemporary && !dns.IsNotFound, false, e
	case errors.As(err, &cert), errors.As(err, &host):
		e.Msg, e.Hint = "the server's certificate is not trusted", "look at the endpoint's URL and the machine's certificates"
		return false, false, e
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Msg, e.Hint = "nothing listens there", "start the server (ollama serve), or correct the endpoint's URL"
		return true, false, e
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Msg = "the connection was closed without an answer"
		return true, true, e
	}
	return false, true, e
}

// Fault gives an error of HTTP's client its kind: the one found inside, where
// this package made it; else the answer could not be read.
func (c *Client) Fault(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		var out error = e
		if OverWindow(err) {
			out = overWindow{out}
		}
		if NotRun(err) {
			out = notRun{out}
		}
		return out
	}
	if ctx.Err() != nil {
		return c.gaveUp(ctx)
	}
	return c.Unreadable("it does not decode") // the library's error may quote it
}

// notRun marks the error of a request that no model has read: it was refused, or never
// reached the server. Nobody pays for it.
type notRun struct{ error }

func (n notRun) Unwrap() error { return n.error }

// NotRun reports whether no model has read what failed with err, so that it costs
// nothing. Of a request that was sent several times that is true of all.
func NotRun(err error) bool {
	_, ok := errors.AsType[notRun](err)
	return ok
}

// overWindow marks the error of a text that is longer than the model's window.
type overWindow struct{ error }

func (o overWindow) Unwrap() error { return o.error }

// OverWindow reports whether the server refused a text that is longer than the model's
// window: a shorter one may pass.
func OverWindow(err error) bool {
	_, ok := errors.AsType[overWindow](err)
	return ok
}

// marked is the error of an answer, told apart where somebody can act on it.
func marked(err error) error {
	if fault.HintOf(err) == hintWindow {
		return overWindow{err}
	}
	return err
}
