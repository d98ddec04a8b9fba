-- Runs one of the small programs below so many times, and prints what it gave:
--
--     lua bench.lua NAME --operations N
--     lua bench.lua --describe
--
-- Lua has no monotonic clock of its own, so who starts it takes the time. The programs and their results are
-- those of bench.pl.
local state = 1

local function chance()
  state = (state * 1664525 + 1013904223) % 4294967296
  return state // 65536
end

local syllables = { "ka", "lo", "mi", "ne", "ru", "sa", "ti", "vo", "zu", "be" }

local function word()
  local n = chance() % 700
  return syllables[n % 10 + 1] .. syllables[n // 10 % 10 + 1] .. syllables[n // 100 + 1]
end

local function words(n)
  local all = {}
  for i = 1, n do all[i] = word() end
  return all
end

local function measurements(n)
  local lines = {}
  for i = 0, n do
    local first = chance() / 65536
    local second = chance() / 65536
    lines[i + 1] = string.format("%d %f %f\n", i, first, second)
  end
  return lines
end

local function document()
  local rows = {}
  for i = 1, 60 do
    local name, title, text = table.unpack(words(3))
    rows[#rows + 1] = string.format(
      '<tr class="row" id="r%d"><td><a href="/%s/%d" title="%s">%s</a></td></tr>\n', i, name, i, title, text)
    if i % 5 == 0 then rows[#rows + 1] = "<!-- " .. name .. " -->\n" end
  end
  return "<html>\n<body>\n<table>\n" .. table.concat(rows) .. "</table>\n</body>\n</html>\n"
end

local function log_lines(n)
  local lines = {}
  for i = 1, n do
    local user, host = table.unpack(words(2))
    local at = i % 3 ~= 0 and "@" or " at "
    local number = chance() % 100
    lines[i] = string.format("%s%d%s%s%d.org GET /%s %d\n", user, i, at, host, number, host, chance())
  end
  return lines
end

local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end

local programs = {}

function programs.fib()
  return function() return tostring(fib(20)) end
end

function programs.movavg()
  local lines = measurements(3000)
  return function()
    local first, second = {}, {}
    local printed, last = 0, ""
    for number, line in ipairs(lines) do
      local hr, inp, outp = line:match("(%S+) (%S+) (%S+)")
      hr, inp, outp = tonumber(hr), tonumber(inp), tonumber(outp)
      if number > 60 then
        table.remove(first)
        table.remove(second)
      end
      table.insert(first, 1, inp)
      table.insert(second, 1, outp)
      if number > 60 and number % 10 == 0 then
        local sumi, sumo = 0, 0
        for i = 1, 20 do
          sumi = sumi + first[i + 1] * (20 / i)
          sumo = sumo + second[i + 1] * (20 / i)
        end
        last = string.format("%f %f %f", hr, sumi / 60, sumo / 60)
        printed = printed + 1
      end
    end
    return printed .. " lines, " .. last
  end
end

function programs.wordcount()
  local text = table.concat(words(4000), " ")
  return function()
    local count, names, total = {}, {}, 0
    for one in text:gmatch("%S+") do
      if not count[one] then names[#names + 1] = one end
      count[one] = (count[one] or 0) + 1
      total = total + 1
    end
    table.sort(names, function(a, b)
      if count[a] ~= count[b] then return count[a] > count[b] end
      return a < b
    end)
    return string.format("%d words, %d different, %s %d", total, #names, names[1], count[names[1]])
  end
end

function programs.regex()
  local text = table.concat(log_lines(600))
  return function()
    local found, sum = 0, 0
    for user, one, host, two in text:gmatch("([a-z]+)([0-9]+)@([a-z]+)([0-9]+)%.([a-z]+)") do
      found = found + 1
      sum = sum + tonumber(one) + tonumber(two) + #user + #host
    end
    return found .. " found, " .. sum
  end
end

function programs.hash()
  local keys = {}
  for i = 1, 10000 do keys[i] = "k" .. chance() % 20000 end
  return function()
    local seen, different, hits = {}, 0, 0
    for i = 1, 5000 do
      local key = keys[i]
      if not seen[key] then different = different + 1 end
      seen[key] = (seen[key] or 0) + 1
    end
    for i = 5001, 10000 do
      if seen[keys[i]] then hits = hits + 1 end
    end
    return different .. " different, " .. hits .. " found"
  end
end

function programs.sort()
  local numbers = {}
  for i = 1, 3000 do
    local high = chance()
    numbers[i] = high * 65536 + chance()
  end
  local names = words(2000)
  return function()
    local ordered = table.move(numbers, 1, #numbers, 1, {})
    local by_name = table.move(names, 1, #names, 1, {})
    table.sort(ordered)
    table.sort(by_name)
    local sum = 0
    for at, value in ipairs(ordered) do sum = (sum + at * (value % 1000)) % 1000003 end
    return string.format("%d %s %s %s", sum, by_name[1], by_name[1001], by_name[#by_name])
  end
end

function programs.string()
  return function()
    local text = ""
    for i = 0, 3999 do text = text .. i .. "," end
    local parts = {}
    for part in text:gmatch("([^,]+),") do parts[#parts + 1] = part end
    local turned = {}
    for i = #parts, 1, -1 do turned[#turned + 1] = parts[i] end
    local joined = table.concat(turned, "-"):upper():gsub("7", "seven")
    return #joined .. " " .. joined:sub(1, 20)
  end
end

function programs.html()
  local text = document()
  return function()
    local at, tags, ends, attributes, comments, bytes = 1, 0, 0, 0, 0, 0
    while at <= #text do
      local from, to, name, inside = text:find("^<!%-%-.-%-%->", at)
      if from then
        comments = comments + 1
      else
        from, to = text:find("^</[a-z]+>", at)
        if from then
          ends = ends + 1
        else
          from, to, name, inside = text:find("^<([a-z]+)([^>]*)>", at)
          if from then
            tags = tags + 1
            for _ in inside:gmatch('([a-z]+)="([^"]*)"') do attributes = attributes + 1 end
          else
            from, to = text:find("^[^<]+", at)
            bytes = bytes + to - from + 1
          end
        end
      end
      at = to + 1
    end
    return string.format("%d tags, %d ends, %d attributes, %d comments, %d bytes",
      tags, ends, attributes, comments, bytes)
  end
end

if arg[1] == "--describe" then
  print(string.format('{"version":"%s","JIT":"%s"}', _VERSION, jit and jit.version or "no"))
else
  local run = programs[arg[1]]()
  local result
  for _ = 1, tonumber(arg[3]) do result = run() end
  print(result)
end
