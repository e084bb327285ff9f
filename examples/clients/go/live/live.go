// Package live follows topics of a live exchange: each event once, in order, through lost connections.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/coder/websocket"
)

const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	pingEvery    = 20 * time.Second
	answerIn     = 60 * time.Second
	maximumBytes = 131072
)

// WAMP's numbers of the messages that a subscriber says and hears.
const (
	hello, welcome, abort, challenge, authenticate, goodbye = 1, 2, 3, 4, 5, 6
	failure, subscribe, subscribed, unsubscribed, event     = 8, 32, 33, 35, 36
	call, result                                            = 48, 50
)

// Event is what was published. Sequence is its number in its topic.
type Event struct {
	Topic       string
	Publication int64
	Sequence    int64
	At          time.Time
	Retained    bool
	Args        []json.RawMessage
	Kwargs      map[string]json.RawMessage
}

// Options say which topics are followed, and what comes first: so many events of the past, or the retained state.
type Options struct {
	Match  string // exact, prefix or wildcard
	Last   int
	Latest bool
}

// Live is a connection that comes back by itself. It is for one goroutine.
type Live struct {
	URL, Realm, User, Ticket string

	followed []*followed
}

// Refused is an error that another try would meet again.
type Refused struct{ Reason, Message string }

func (r Refused) Error() string { return fmt.Sprintf("%s (%s)", r.Message, r.Reason) }

type followed struct {
	topic    string
	options  Options
	call     func(Event)
	numbers  map[string]int64
	retained map[string]int64
	since    string // by the router's clock, once all of the past has come
}

// Follow has a function called for each event. Call it before Run.
func (l *Live) Follow(topic string, options Options, call func(Event)) {
	if options.Match == "" {
		options.Match = "exact"
	}
	l.followed = append(l.followed, &followed{
		topic: topic, options: options, call: call, numbers: map[string]int64{}, retained: map[string]int64{},
	})
}

// Run follows until the context ends, or until something is refused.
func (l *Live) Run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		settled, err := l.converse(ctx)
		var refused Refused
		if ctx.Err() != nil || errors.As(err, &refused) {
			return err
		}
		if settled {
			failures = 0
		}
		longest := min(firstPause<<min(failures, 6), longestPause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(longest)):
		}
	}
}

// converse holds one session; it says whether the router has answered a request in it.
func (l *Live) converse(ctx context.Context) (settled bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connection, _, err := websocket.Dial(ctx, l.URL, &websocket.DialOptions{Subprotocols: []string{"wamp.2.json"}})
	if err != nil {
		return false, err
	}
	defer connection.CloseNow()
	connection.SetReadLimit(maximumBytes)
	go keepAlive(ctx, cancel, connection)
	s := session{Live: l, ctx: ctx, connection: connection, byID: map[int64]*followed{}}
	err = s.say(hello, l.Realm, map[string]any{
		"roles": map[string]any{"subscriber": map[string]any{}, "caller": map[string]any{}}, "authid": l.User, "authmethods": []string{"ticket"},
	})
	for err == nil {
		err = s.hear()
	}
	return s.settled, err
}

func keepAlive(ctx context.Context, cancel func(), connection *websocket.Conn) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(pingEvery):
			within, done := context.WithTimeout(ctx, answerIn)
			if connection.Ping(within) != nil {
				cancel()
			}
			done()
		}
	}
}

type session struct {
	*Live
	ctx        context.Context
	connection *websocket.Conn
	byID       map[int64]*followed
	joinedAt   string
	settled    bool
}

func (s *session) say(message ...any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return s.connection.Write(s.ctx, websocket.MessageText, text)
}

func (s *session) hear() error {
	_, text, err := s.connection.Read(s.ctx)
	if err != nil {
		return err
	}
	var message []json.RawMessage
	if err := json.Unmarshal(text, &message); err != nil {
		return err
	}
	switch kind := number(message, 0); kind {
	case challenge:
		return s.say(authenticate, s.Ticket, map[string]any{})
	case welcome:
		return s.joined(message)
	case abort, goodbye:
		return ended(message)
	case event:
		s.received(message)
	case failure, subscribed, result, unsubscribed:
		return s.replied(kind, message)
	}
	return nil
}

// joined subscribes. The reply to the call behind each SUBSCRIBE tells that all of the past has come.
func (s *session) joined(message []json.RawMessage) error {
	s.joinedAt = details(message, 2).At
	for place, one := range s.followed {
		match := map[string]any{"match": one.options.Match}
		if err := s.say(subscribe, 2*place+1, one.wanted(), one.topic); err != nil {
			return err
		}
		if err := s.say(call, 2*place+2, map[string]any{}, "wamp.subscription.lookup", []any{one.topic, match}); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) replied(kind int64, message []json.RawMessage) error {
	s.settled = true
	if kind == failure && number(message, 1) == subscribe {
		return Refused{text(message, 4), first(message, 5)}
	}
	request := number(message, 1)
	if kind == failure {
		request = number(message, 2)
	}
	if kind == unsubscribed {
		return Refused{details(message, 2).Reason, "a subscription was taken away"}
	}
	if place := (request - 1) / 2; request > 0 && int(place) < len(s.followed) {
		if one := s.followed[place]; kind == subscribed {
			s.byID[number(message, 2)] = one
		} else if one.since == "" {
			one.since = s.joinedAt
		}
	}
	return nil
}

func (s *session) received(message []json.RawMessage) {
	one := s.byID[number(message, 1)]
	if one == nil {
		return
	}
	told := details(message, 3)
	at, _ := time.Parse(time.RFC3339, told.At)
	e := Event{Topic: told.Topic, Publication: number(message, 2), Sequence: told.Sequence, At: at, Retained: told.Retained}
	if e.Topic == "" {
		e.Topic = one.topic
	}
	if len(message) > 4 {
		_ = json.Unmarshal(message[4], &e.Args)
	}
	if len(message) > 5 {
		_ = json.Unmarshal(message[5], &e.Kwargs)
	}
	if one.isNew(e) {
		one.call(e)
	}
}

func (f *followed) isNew(e Event) bool {
	if e.Sequence <= f.numbers[e.Topic] || e.Retained && f.retained[e.Topic] == e.Publication {
		return false
	}
	if e.Retained {
		f.retained[e.Topic] = e.Publication
		return true
	}
	f.numbers[e.Topic] = e.Sequence
	return f.retained[e.Topic] != e.Publication
}

// wanted is what SUBSCRIBE asks for: what is behind all that was seen, and at first what is wanted of the past.
func (f *followed) wanted() map[string]any {
	options := map[string]any{"match": f.options.Match, "get_retained": f.options.Latest}
	if seen := f.numbers[f.topic]; f.options.Match == "exact" && seen > 0 {
		options["_history"] = map[string]any{"after": seen}
	} else if f.since != "" {
		options["_history"] = map[string]any{"after": map[string]any{"since": f.since, "topics": f.numbers}}
	} else if f.options.Last > 0 {
		options["_history"] = map[string]any{"last": f.options.Last}
	}
	return options
}

func ended(message []json.RawMessage) error {
	reason := text(message, 2)
	if reason == "wamp.error.timeout" || reason == "wamp.error.protocol_violation" {
		return errors.New(reason)
	}
	return Refused{reason, details(message, 1).Message}
}

type told struct {
	Topic    string `json:"topic"`
	Sequence int64  `json:"_seq"`
	At       string `json:"_at"`
	Retained bool   `json:"retained"`
	Message  string `json:"message"`
	Reason   string `json:"reason"`
}

// These read an element of a message; one that is not there, or of another kind, is as good as none.
func details(message []json.RawMessage, place int) (value told) { read(message, place, &value); return }
func number(message []json.RawMessage, place int) (value int64) { read(message, place, &value); return }
func text(message []json.RawMessage, place int) (value string)  { read(message, place, &value); return }
func first(message []json.RawMessage, place int) (value string) {
	var list []json.RawMessage
	read(message, place, &list)
	return text(list, 0)
}

func read(message []json.RawMessage, place int, value any) {
	if place < len(message) {
		_ = json.Unmarshal(message[place], value)
	}
}
