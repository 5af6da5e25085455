# Debian's ruby-redis, with its defaults.
require 'redis'
require 'digest'

PORT = Integer(ENV.fetch('HEADGATE_PORT'))
EVERY_BYTE = (0..255).to_a.pack('C*')
def open_client = Redis.new(port: PORT)
REDIS = open_client
$failed = false

def step(name)
  yield
  puts "ok #{name}"
rescue StandardError => e
  $failed = true
  puts "not ok #{name}: #{e.class} #{e.message} #{e.backtrace.first}"
end

def same(want, got)
  raise "want #{want.inspect}, got #{got.inspect}" unless want == got
end

step('connect') do
  same 'PONG', REDIS.ping
  same 'OK', REDIS.set('rb:k', 'v', px: 60_000)
  same 'v', REDIS.get('rb:k')
  same nil, REDIS.get('rb:absent')
  begin
    REDIS.incr('rb:k')
    raise 'INCR of a word passed'
  rescue Redis::CommandError => e
    same 'ERR value is not an integer or out of range', e.message
  end
end

step('pipeline') do
  REDIS.del('rb:n')
  same 1000, REDIS.pipelined { |p| 1000.times { p.incr('rb:n') } }.last
end

step('transaction') do
  now = (Time.now.to_f * 1000).to_i
  replies = REDIS.multi do |m|
    m.del('rb:w')
    m.zadd('rb:w', [[now, 'a'], [now + 1, 'b']])
    m.zremrangebyscore('rb:w', 0, now)
    m.zcard('rb:w')
    m.pexpire('rb:w', 1000)
  end
  same [0, 2, 1, 1, true], replies
end

step('watch') do
  replies = REDIS.watch('rb:watched') do
    open_client.set('rb:watched', 'changed')
    REDIS.multi { |m| m.set('rb:watched', 'mine') }
  end
  same nil, replies
  same 'changed', REDIS.get('rb:watched')
end

step('script') do
  text = "return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1} -- #{Process.pid}.#{rand}"
  begin
    REDIS.evalsha(Digest::SHA1.hexdigest(text), keys: ['rb:k'], argv: ['x', 41])
    raise 'EVALSHA of an unknown script passed'
  rescue Redis::CommandError => e
    same 'NOSCRIPT No matching script. Please use EVAL.', e.message
  end
  sha = REDIS.script(:load, text)
  same ['rb:k', 'x', 42], REDIS.evalsha(sha, keys: ['rb:k'], argv: ['x', 41])
  same [true, false], REDIS.script(:exists, [sha, '0' * 40])
end

step('pubsub') do
  heard = []
  ready = Queue.new
  listener = Thread.new do
    open_client.subscribe('rb:news') do |on|
      on.subscribe { ready << true }
      on.message do |channel, text|
        heard << [channel, text]
        Thread.exit
      end
    end
  end
  ready.pop
  same 1, REDIS.publish('rb:news', 'hello')
  listener.join(10) or raise 'nothing heard'
  same [['rb:news', 'hello']], heard
end

step('blocking') do
  REDIS.del('rb:q', 'rb:zq')
  waiter = Thread.new { open_client.blpop('rb:none', 'rb:q', timeout: 10) }
  REDIS.rpush('rb:q', 'job')
  same %w[rb:q job], waiter.value
  REDIS.zadd('rb:zq', 1.5, 'member')
  same ['rb:zq', 'member', 1.5], REDIS.bzpopmin('rb:zq', timeout: 10)
  same nil, REDIS.brpop('rb:none', timeout: 1)
end

step('scan') do
  REDIS.pipelined { |p| 500.times { |i| p.set("rb:scan:#{i}", i) } }
  same 500, REDIS.scan_each(match: 'rb:scan:*', count: 50).to_a.uniq.size
end

step('binary') do
  REDIS.set('rb:bin', EVERY_BYTE)
  same EVERY_BYTE, REDIS.get('rb:bin').b
  REDIS.hset('rb:h', 'field', EVERY_BYTE)
  same EVERY_BYTE, REDIS.hgetall('rb:h')['field'].b
end

step('throttle') do
  REDIS.del('rb:cell')
  same [0, 16, 15, -1, 2], REDIS.call('CL.THROTTLE', 'rb:cell', 15, 30, 60)
end

exit($failed ? 1 : 0)
