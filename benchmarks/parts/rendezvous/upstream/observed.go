package main

import (
	"context"
	"os"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	snowflake "gitlab.torproject.org/tpo/anti-censorship/pluggable-transports/snowflake/v2/client/lib"
	"gitlab.torproject.org/tpo/anti-censorship/pluggable-transports/snowflake/v2/common/sqsclient"
)

// observedClient is a real client's way to the broker; it does one rendezvous at a time.
type observedClient struct {
	broker   *snowflake.BrokerChannel
	observer *observer
}

// newObservedClient makes a client as its users do, and puts an observer between it and the AWS SDK.
//
// Upstream exports neither the rendezvous method nor the SQS client inside it, hence the detour by reflection.
func newObservedClient(config snowflake.ClientConfig) *observedClient {
	transport, err := snowflake.NewSnowflakeClient(config)
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(2)
	}
	dialer := *field[*snowflake.WebRTCDialer](transport, "dialer")
	inner := field[sqsclient.SQSClient](dialer.BrokerChannel.Rendezvous, "sqsClient")
	observing := &observer{SQSClient: *inner}
	*inner = observing
	return &observedClient{broker: dialer.BrokerChannel, observer: observing}
}

// field returns where an unexported field of a struct is.
func field[T any](pointer any, name string) *T {
	return (*T)(unsafe.Pointer(reflect.ValueOf(pointer).Elem().FieldByName(name).UnsafeAddr()))
}

// observer passes a client's calls on and remembers what is measured of them.
type observer struct {
	sqsclient.SQSClient
	sentAt    time.Time
	arrivedAt time.Time
	calls     map[string]int
}

func (o *observer) reset() {
	o.sentAt, o.arrivedAt, o.calls = time.Time{}, time.Time{}, map[string]int{}
}

func (o *observer) SendMessage(
	ctx context.Context, input *sqs.SendMessageInput, options ...func(*sqs.Options),
) (*sqs.SendMessageOutput, error) {
	o.calls["SendMessage"]++
	o.sentAt = time.Now()
	return o.SQSClient.SendMessage(ctx, input, options...)
}

func (o *observer) GetQueueUrl(
	ctx context.Context, input *sqs.GetQueueUrlInput, options ...func(*sqs.Options),
) (*sqs.GetQueueUrlOutput, error) {
	o.calls["GetQueueUrl"]++
	return o.SQSClient.GetQueueUrl(ctx, input, options...)
}

// ReceiveMessage also asks when the message came into the queue, which the real client does not want to know.
func (o *observer) ReceiveMessage(
	ctx context.Context, input *sqs.ReceiveMessageInput, options ...func(*sqs.Options),
) (*sqs.ReceiveMessageOutput, error) {
	o.calls["ReceiveMessage"]++
	sent := types.MessageSystemAttributeNameSentTimestamp
	input.MessageSystemAttributeNames = append(input.MessageSystemAttributeNames, sent)
	output, err := o.SQSClient.ReceiveMessage(ctx, input, options...)
	if err == nil && len(output.Messages) > 0 {
		if epoch, err := strconv.ParseInt(output.Messages[0].Attributes[string(sent)], 10, 64); err == nil {
			o.arrivedAt = time.UnixMilli(epoch)
		}
	}
	return output, err
}
