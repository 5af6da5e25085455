-- One counter for each period; no answer at all.
for i = 1, #KEYS do
  local missing = redis.call("exists", KEYS[i]) == 0
  redis.call("incrby", KEYS[i], ARGV[1])
  if not missing and ARGV[2] ~= "strict" or missing then
    redis.call("expireat", KEYS[i], ARGV[i + 2])
  end
end
