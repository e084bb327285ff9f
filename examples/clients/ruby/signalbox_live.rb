# frozen_string_literal: true

# Follows topics of a live exchange: each event once, in order, through lost connections.
# Needs websocket-driver (Debian: ruby-websocket-driver).

require "json"
require "openssl"
require "socket"
require "time"
require "uri"
require "websocket/driver"

module Signalbox
  # What was published. `sequence` is its number in its topic.
  Event = Struct.new(:topic, :publication, :sequence, :at, :retained, :args, :kwargs)

  # The router refuses something, and would refuse it again.
  class Refused < StandardError; end

  # A subscription, and what was seen of it.
  class Followed
    attr_reader :topic, :match

    def initialize(topic, match:, last:, latest:, callback:)
      @topic, @match, @last, @latest, @callback = topic, match, last, latest, callback
      @numbers, @retained, @since = {}, {}, nil
    end

    # What SUBSCRIBE asks for: what is behind all that was seen, and at first what is wanted of the past.
    def wanted
      history =
        if match == "exact" && @numbers[topic] then { after: @numbers[topic] }
        elsif @since then { after: { since: @since, topics: @numbers } }
        elsif @last.positive? then { last: @last }
        end
      { match: match, get_retained: @latest, _history: history }.compact
    end

    # All of the past has come that was asked for by a session which began then, by the router's clock.
    def caught_up(joined_at)
      @since ||= joined_at
    end

    def received(event)
      @callback.call(event) if new?(event)
    end

    private

    def new?(event)
      known = @retained[event.topic] == event.publication
      return false if event.sequence <= @numbers.fetch(event.topic, 0) || (event.retained && known)

      (event.retained ? @retained : @numbers)[event.topic] = event.retained ? event.publication : event.sequence
      event.retained || !known
    end
  end

  # A connection that comes back by itself.
  class Live
    FIRST_PAUSE, LONGEST_PAUSE, PING_EVERY, PONG_WITHIN = 0.5, 30.0, 20.0, 60.0
    ROLES = { subscriber: {}, caller: {} }.freeze
    PASSING = ["wamp.error.timeout", "wamp.error.protocol_violation"].freeze

    def initialize(url:, realm:, user:, ticket:)
      @url, @realm, @user, @ticket, @followed = url, realm, user, ticket, []
    end

    # Has the block called for each event. `last` events of the past come first; with `latest`, a topic's retained state.
    def follow(topic, match: "exact", last: 0, latest: false, &callback)
      @followed << Followed.new(topic, match: match, last: last, latest: latest, callback: callback)
    end

    # Follows until something is refused.
    def run
      failures = 0
      loop do
        settled = converse
        failures = settled ? 0 : failures + 1
        sleep(rand * [FIRST_PAUSE * 2**[failures, 6].min, LONGEST_PAUSE].min)
      end
    end

    private

    # Holds one session; returns whether the router has answered a request in it.
    def converse
      @settled, @pinged, @over, @by_id = false, false, false, {}
      line = Line.new(@url)
      driver = WebSocket::Driver.client(line, protocols: ["wamp.2.json"], max_length: 131_072)
      driver.on(:open) { say(driver, 1, @realm, { roles: ROLES, authmethods: ["ticket"], authid: @user }) }
      driver.on(:message) { |message| hear(driver, JSON.parse(message.data)) }
      driver.on(:close) { @over = true }
      driver.start
      pump(line, driver) until @over
      @settled
    rescue SystemCallError, IOError, SocketError, OpenSSL::SSL::SSLError
      @settled
    ensure
      line&.close
    end

    def pump(line, driver)
      return driver.parse(line.read) if line.readable?(@pinged ? PONG_WITHIN : PING_EVERY)
      raise IOError, "no answer" if @pinged

      @pinged = true
      driver.ping { @pinged = false }
    end

    def say(driver, *message)
      driver.text(JSON.generate(message))
    end

    def hear(driver, message)
      kind, *rest = message
      case kind
      when 2 then joined(driver, rest[1]["_at"])
      when 3, 6 then ended(*rest)
      when 4 then say(driver, 5, @ticket, {})
      when 8 then failed(*rest)
      when 33 then @by_id[rest[1]] = @followed[(rest[0] - 1) / 2]
      when 35 then raise Refused, "a subscription was taken away (#{rest[1]&.fetch("reason", nil)})"
      when 36 then received(*rest)
      when 50 then caught_up(rest[0])
      end
    end

    # The reply to the call behind each SUBSCRIBE tells that all of the past has come.
    def joined(driver, at)
      @joined_at = at
      @followed.each_with_index do |one, place|
        say(driver, 32, 2 * place + 1, one.wanted, one.topic)
        say(driver, 48, 2 * place + 2, {}, "wamp.subscription.lookup", [one.topic, { match: one.match }])
      end
    end

    def caught_up(request)
      @settled = true
      @followed[(request - 1) / 2].caught_up(@joined_at)
    end

    def failed(type, request, _details, error, args = [])
      raise Refused, "#{args.first} (#{error})" if type == 32

      caught_up(request)
    end

    def ended(details, reason)
      raise Refused, "#{details["message"]} (#{reason})" unless PASSING.include?(reason)

      @over = true
    end

    def received(subscription, publication, details, args = [], kwargs = {})
      one = @by_id[subscription] or return
      at = details["_at"] && Time.parse(details["_at"])
      topic = details.fetch("topic", one.topic)
      one.received(Event.new(topic, publication, details["_seq"], at, details["retained"] == true, args, kwargs))
    end
  end

  # A TCP or TLS connection, as the driver wants it.
  class Line
    attr_reader :url

    def initialize(url)
      @url, uri = url, URI(url)
      @socket = Socket.tcp(uri.host, uri.port || (uri.scheme == "wss" ? 443 : 80), connect_timeout: 20)
      return if uri.scheme == "ws"

      context = OpenSSL::SSL::SSLContext.new.tap(&:set_params)
      @socket = OpenSSL::SSL::SSLSocket.new(@socket, context)
      @socket.hostname = uri.host
      @socket.sync_close = true
      @socket.connect
      @socket.post_connection_check(uri.host)
    end

    def write(bytes)
      @socket.write(bytes)
    end

    def read
      @socket.readpartial(65_536)
    end

    def readable?(seconds)
      pending = @socket.respond_to?(:pending) && @socket.pending.positive?
      pending || !IO.select([@socket], nil, nil, seconds).nil?
    end

    def close
      @socket&.close
    rescue SystemCallError, IOError
      nil
    end
  end
end
