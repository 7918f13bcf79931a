// Command dig stands in for the program of that name where the official tests call it: it asks the resolver of its machine, or
// @SERVER, for NAME [TYPE], with +tcp, +search and +short. It prints answers only, one a line.
package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// How long one question may take.
const patience = 5 * time.Second

type question struct {
	name, server  string
	kind          uint16
	tcp, search   bool
	onlyTheAnswer bool
}

func main() {
	asked, err := parse(os.Args[1:])
	if err == nil {
		err = asked.print()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dig:", err)
		os.Exit(9)
	}
}

func parse(words []string) (question, error) {
	asked := question{kind: dns.TypeA}
	for _, word := range words {
		kind, isKind := dns.StringToType[strings.ToUpper(word)]
		switch {
		case word == "+tcp":
			asked.tcp = true
		case word == "+search":
			asked.search = true
		case word == "+short":
			asked.onlyTheAnswer = true
		case strings.HasPrefix(word, "+"):
		case strings.HasPrefix(word, "@"):
			asked.server = word[1:]
		case asked.name == "":
			asked.name = word
		case isKind:
			asked.kind = kind
		default:
			return asked, fmt.Errorf("%s: no type of records", word)
		}
	}
	if asked.name == "" {
		return asked, fmt.Errorf("no name is asked for")
	}
	return asked, nil
}

func (asked question) print() error {
	config, err := dns.ClientConfigFromFile("/etc/resolv.conf")
	if err != nil {
		return err
	}
	names, servers := []string{dns.Fqdn(asked.name)}, config.Servers
	if asked.search {
		names = config.NameList(asked.name)
	}
	if asked.server != "" {
		servers = []string{asked.server}
	}
	client := dns.Client{Timeout: patience}
	if asked.tcp {
		client.Net = "tcp"
	}
	err = fmt.Errorf("no server answers")
	for _, name := range names {
		message := new(dns.Msg)
		message.SetQuestion(name, asked.kind)
		for _, server := range servers {
			var answer *dns.Msg
			answer, _, err = client.Exchange(message, net.JoinHostPort(server, config.Port))
			if err != nil {
				continue
			}
			for _, record := range answer.Answer {
				fmt.Println(asked.line(record))
			}
			if len(answer.Answer) > 0 {
				return nil
			}
			break
		}
	}
	// As dig: no records are an answer, too.
	return err
}

func (asked question) line(record dns.RR) string {
	if !asked.onlyTheAnswer {
		return record.String()
	}
	return strings.TrimPrefix(record.String(), record.Header().String())
}
