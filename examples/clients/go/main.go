// Prints a container's log and the states of its record: go run . trial.container.42
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"signalbox/examples/clients/go/live"
)

func main() {
	setting := func(name string) string { return os.Getenv("SIGNALBOX_" + name) }
	client := live.Live{URL: setting("URL"), Realm: setting("REALM"), User: setting("USER"), Ticket: setting("TICKET")}
	container := os.Args[1]
	client.Follow(container+".log.", live.Options{Match: "prefix", Last: 100}, func(event live.Event) {
		var line string
		_ = json.Unmarshal(event.Args[0], &line)
		fmt.Println("log:", line)
	})
	client.Follow(container+".record", live.Options{Latest: true}, func(event live.Event) {
		var record struct{ State string }
		_ = json.Unmarshal(event.Args[0], &record)
		fmt.Println("record:", record.State)
	})
	log.Fatal(client.Run(context.Background()))
}
