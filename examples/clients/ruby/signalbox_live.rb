# frozen_string_literal: true

# Follows topics of a live exchange: delivers each event once, in order, across lost connections.
# Requires websocket-driver (Debian: ruby-websocket-driver).

require "json"
require "openssl"
require "socket"
require "time"
require "uri"
require "websocket/driver"

module Signalbox
  # An event. `sequence` is its number in its topic; events about sessions have none. `retained` marks the latest state
  # of the topic, which is sent on subscribing.
  Event = Struct.new(:topic, :publication, :sequence, :at, :retained, :args, :kwargs)

  # Raised for what the router refuses and would refuse again.
  class Refused < StandardError; end

  # How far a subscription has been received.
  class Cursor
    TOPICS_BYTES = 24_000 # API Gateway accepts frames of at most 32 KB
    NUMBER_BYTES = 24 # a topic's entry without its name
    GRACE = 15 * 60 # seconds before the newest event, from which topics without room are requested again
    KEPT_PUBLICATIONS = 1_000 # of events without a number

    attr_reader :topic, :match

    def initialize(topic, match:, last:, latest:)
      @topic, @match, @last, @latest = topic, match, last, latest
      # The numbers by topic, the topic of the latest event last, and the publications of events without a number.
      @numbers, @retained, @publications, @newest, @since = {}, {}, {}, nil, nil
    end

    # Returns the options of SUBSCRIBE: the history after the last event, or at first the `last` past events.
    def request
      history =
        if match == "exact" && @numbers[topic] then { after: @numbers[topic] }
        elsif @since then { after: after_each }
        elsif @last.positive? then { last: @last }
        end
      { match: match, get_retained: @latest, _history: history }.compact
    end

    # Notes that all of the history has come that was requested by a session which began then, by the router's clock.
    def caught_up(joined_at)
      @since ||= joined_at
    end

    # Returns whether an event has not come before, and takes note of it.
    def new?(event)
      return new_publication?(event.publication) if event.sequence.nil?
      return false if event.sequence <= @numbers.fetch(event.topic, 0)

      known = @retained[event.topic] == event.publication
      event.retained ? @retained[event.topic] = event.publication : advance(event)
      !known
    end

    private

    def advance(event)
      @numbers.delete(event.topic)
      @numbers[event.topic] = event.sequence
      @newest = [@newest, event.at].compact.max
    end

    def new_publication?(publication)
      return false if @publications[publication]

      @publications[publication] = true
      @publications.shift if @publications.size > KEPT_PUBLICATIONS
      true
    end

    # When the topics do not fit into a frame, those of the latest events are named and the others are requested by
    # time; `new?` drops what comes again.
    def after_each
      room = TOPICS_BYTES
      named = @numbers.to_a.reverse.take_while { |topic, _| (room -= topic.to_json.bytesize + NUMBER_BYTES) >= 0 }.to_h
      return { since: @since, topics: named } if named.size == @numbers.size || @newest.nil?

      { since: [Time.parse(@since), @newest - GRACE].max.utc.iso8601, topics: named }
    end
  end

  # A connection that is opened again when it is lost.
  class Live
    FIRST_PAUSE, LONGEST_PAUSE, PING_EVERY, PONG_WITHIN = 0.5, 30.0, 20.0, 60.0
    ROLES = { subscriber: {}, caller: {} }.freeze
    TEMPORARY = ["wamp.error.timeout", "wamp.error.protocol_violation"].freeze

    def initialize(url:, realm:, user:, ticket:)
      @url, @realm, @user, @ticket, @followed = url, realm, user, ticket, []
    end

    # Calls the block for each event. The `last` past events come first; with `latest`, a topic's retained event does.
    def follow(topic, match: "exact", last: 0, latest: false, &callback)
      @followed << [Cursor.new(topic, match: match, last: last, latest: latest), callback]
    end

    # Follows until the router refuses something, and raises Refused then.
    def run
      failures = 0
      loop do
        settled = run_session
        failures = settled ? 0 : failures + 1
        sleep(rand * [FIRST_PAUSE * 2**[failures, 6].min, LONGEST_PAUSE].min)
      end
    end

    private

    # Runs one session; returns whether the router has answered a request in it.
    def run_session
      @settled, @pinged, @over, @by_id = false, false, false, {}
      stream = Stream.new(@url)
      driver = WebSocket::Driver.client(stream, protocols: ["wamp.2.json"], max_length: 131_072)
      driver.on(:open) { send_message(driver, 1, @realm, { roles: ROLES, authmethods: ["ticket"], authid: @user }) }
      driver.on(:message) { |message| receive(driver, JSON.parse(message.data)) }
      driver.on(:close) { @over = true }
      driver.start
      read(stream, driver) until @over
      @settled
    rescue SystemCallError, IOError, SocketError, OpenSSL::SSL::SSLError
      @settled
    ensure
      stream&.close
    end

    def read(stream, driver)
      return driver.parse(stream.read) if stream.readable?(@pinged ? PONG_WITHIN : PING_EVERY)
      raise IOError, "no answer" if @pinged

      @pinged = true
      driver.ping { @pinged = false }
    end

    def send_message(driver, *message)
      driver.text(JSON.generate(message))
    end

    def receive(driver, message)
      type, *rest = message
      case type
      when 2 then welcomed(driver, rest[1]["_at"])
      when 3, 6 then ended(*rest)
      when 4 then send_message(driver, 5, @ticket, {})
      when 8 then failed(*rest)
      when 33 then @by_id[rest[1]] = @followed[(rest[0] - 1) / 2]
      when 35 then raise Refused, "a subscription was revoked (#{rest[1]&.fetch("reason", nil)})"
      when 36 then received(*rest)
      when 50 then caught_up(rest[0])
      end
    end

    # Subscribes, and calls a procedure after each SUBSCRIBE: the reply comes after all of the requested history.
    def welcomed(driver, at)
      @joined_at = at
      @followed.each_with_index do |(cursor, _), index|
        send_message(driver, 32, 2 * index + 1, cursor.request, cursor.topic)
        lookup = [cursor.topic, { match: cursor.match }]
        send_message(driver, 48, 2 * index + 2, {}, "wamp.subscription.lookup", lookup)
      end
    end

    def caught_up(request)
      @settled = true
      cursor, = @followed[(request - 1) / 2]
      cursor.caught_up(@joined_at)
    end

    def failed(type, request, _details, error, args = [])
      raise Refused, "#{args.first} (#{error})" if type == 32

      caught_up(request)
    end

    def ended(details, reason)
      raise Refused, "#{details["message"]} (#{reason})" unless TEMPORARY.include?(reason)

      @over = true
    end

    def received(subscription, publication, details, args = [], kwargs = {})
      cursor, callback = @by_id[subscription]
      return unless cursor

      at = details["_at"] && Time.parse(details["_at"])
      topic = details.fetch("topic", cursor.topic)
      event = Event.new(topic, publication, details["_seq"], at, details["retained"] == true, args, kwargs)
      callback.call(event) if cursor.new?(event)
    end
  end

  # A TCP or TLS connection with the methods that WebSocket::Driver calls.
  class Stream
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
