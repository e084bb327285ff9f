// Package live follows topics of a live exchange: it delivers each event once, in order, across lost connections.
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

// The types of the WAMP messages that a subscriber sends and receives.
const (
	hello, welcome, abort, challenge, authenticate, goodbye = 1, 2, 3, 4, 5, 6
	failure, subscribe, subscribed, unsubscribed, event     = 8, 32, 33, 35, 36
	call, result                                            = 48, 50
)

// Live is a connection that is opened again when it is lost. It is for one goroutine.
type Live struct {
	URL, Realm, User, Ticket string

	followed []*followed
}

// Refused is an error that another attempt would meet again.
type Refused struct{ Reason, Message string }

func (r Refused) Error() string { return fmt.Sprintf("%s (%s)", r.Message, r.Reason) }

type followed struct {
	*cursor
	call func(Event)
}

// Follow calls a function for each event. Call it before Run.
func (l *Live) Follow(topic string, options Options, call func(Event)) {
	if options.Match == "" {
		options.Match = "exact"
	}
	l.followed = append(l.followed, &followed{newCursor(topic, options), call})
}

// Run follows until the context ends or the router refuses something.
func (l *Live) Run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		settled, err := l.runSession(ctx)
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

// runSession runs one session and returns whether the router has answered a request in it.
func (l *Live) runSession(ctx context.Context) (settled bool, err error) {
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
	roles := map[string]any{"subscriber": map[string]any{}, "caller": map[string]any{}}
	err = s.send(hello, l.Realm, map[string]any{"roles": roles, "authid": l.User, "authmethods": []string{"ticket"}})
	for err == nil {
		err = s.receive()
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

func (s *session) send(message ...any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return s.connection.Write(s.ctx, websocket.MessageText, text)
}

func (s *session) receive() error {
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
		return s.send(authenticate, s.Ticket, map[string]any{})
	case welcome:
		return s.welcomed(message)
	case abort, goodbye:
		return ended(message)
	case event:
		s.received(message)
	case failure, subscribed, result, unsubscribed:
		return s.replied(kind, message)
	}
	return nil
}

// welcomed subscribes, and calls a procedure after each SUBSCRIBE: the reply comes after all of the requested history.
func (s *session) welcomed(message []json.RawMessage) error {
	s.joinedAt = details(message, 2).At
	for index, one := range s.followed {
		match := map[string]any{"match": one.options.Match}
		if err := s.send(subscribe, 2*index+1, one.request(), one.topic); err != nil {
			return err
		}
		if err := s.send(call, 2*index+2, map[string]any{}, "wamp.subscription.lookup", []any{one.topic, match}); err != nil {
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
		return Refused{details(message, 2).Reason, "a subscription was revoked"}
	}
	if index := (request - 1) / 2; request > 0 && int(index) < len(s.followed) {
		if one := s.followed[index]; kind == subscribed {
			s.byID[number(message, 2)] = one
		} else {
			one.caughtUp(s.joinedAt)
		}
	}
	return nil
}

func (s *session) received(message []json.RawMessage) {
	one := s.byID[number(message, 1)]
	if one == nil {
		return
	}
	d := details(message, 3)
	at, _ := time.Parse(time.RFC3339, d.At)
	e := Event{Topic: d.Topic, Publication: number(message, 2), Sequence: d.Sequence, At: at, Retained: d.Retained}
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

func ended(message []json.RawMessage) error {
	reason := text(message, 2)
	if reason == "wamp.error.timeout" || reason == "wamp.error.protocol_violation" {
		return errors.New(reason)
	}
	return Refused{reason, details(message, 1).Message}
}

// messageDetails are the details of WELCOME, EVENT, ABORT, GOODBYE and UNSUBSCRIBED.
type messageDetails struct {
	Topic    string `json:"topic"`
	Sequence int64  `json:"_seq"`
	At       string `json:"_at"`
	Retained bool   `json:"retained"`
	Message  string `json:"message"`
	Reason   string `json:"reason"`
}

// These read an element of a message. A missing element, or one of another type, is the zero value.
func details(message []json.RawMessage, index int) (value messageDetails) {
	read(message, index, &value)
	return
}
func number(message []json.RawMessage, index int) (value int64) { read(message, index, &value); return }
func text(message []json.RawMessage, index int) (value string)  { read(message, index, &value); return }
func first(message []json.RawMessage, index int) (value string) {
	var list []json.RawMessage
	read(message, index, &list)
	return text(list, 0)
}

func read(message []json.RawMessage, index int, value any) {
	if index < len(message) {
		_ = json.Unmarshal(message[index], value)
	}
}
