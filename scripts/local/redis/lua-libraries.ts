import { bytesOf, type LuaState, lauxlib, lua, lualib, setFunction } from './lua-runtime.ts'

/**
 * What Lua 5.1 and Redis have and Lua 5.3 has not, and guards against globals as Redis has them. Known to differ:
 * `%e` writes a short exponent, and `%f` rounds what lies exactly between two results up.
 */
export const PRELUDE = `
unpack = table.unpack
table.getn = function(t) return #t end
table.maxn = function(t) local m = 0 for k in pairs(t) do if type(k) == 'number' and k > m then m = k end end return m end
math.pow = function(x, y) return x ^ y end
math.mod = math.fmod
loadstring = load
dofile, loadfile, print = nil, nil, nil
local print_value = tostring
tostring = function(value) return type(value) == 'number' and value .. '' or print_value(value) end
local format = string.format
string.format = function(pattern, ...)
  local values, position = {...}, 0
  pattern = string.gsub(pattern, '%%([-+ #0]*%d*%.?%d*)(.)', function(flags, kind)
    if kind == '%' then return end
    position = position + 1
    local value = values[position]
    if kind == 's' then
      if type(value) ~= 'string' and type(value) ~= 'number' then
        error('bad argument #' .. (position + 1) .. " to 'format' (string expected, got " .. type(value) .. ')', 3)
      end
      values[position] = tostring(value)
    end
    if (kind == 'd' or kind == 'i') and tonumber(value) and not string.find(flags, '.', 1, true) then
      value = tonumber(value)
      -- The cast of C: what does not fit 64 bits becomes the smallest integer.
      if not (value > -2 ^ 63 and value < 2 ^ 63) then value = -2 ^ 63 end
      values[position] = value < 0 and math.ceil(value) or math.floor(value)
      return '%' .. flags .. '.0f'
    end
  end)
  return format(pattern, unpack(values, 1, select('#', ...)))
end
redis.status_reply = function(text) return {ok = text} end
redis.error_reply = function(text) return {err = string.find(text, '^%-') and string.sub(text, 2) or text} end
redis.log = function() end
redis.replicate_commands = function() return true end
redis.set_repl = function() end
redis.setresp = function() end
redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
setmetatable(_G, {
  __newindex = function() error('Attempt to modify a readonly table', 2) end,
  __index = function(_, name)
    error('Script attempted to access nonexistent global variable \\'' .. tostring(name) .. '\\'', 2)
  end,
})
`

/** Bitwise functions of Lua BitOp, which Redis carries: on 32 bits, with a sign. https://bitop.luajit.org/api.html */
const BIT_FUNCTIONS: Record<string, (...values: number[]) => number> = {
  tobit: (value = 0) => value,
  bnot: (value = 0) => ~value,
  band: (...values) => values.reduce((left, right) => left & right),
  bor: (...values) => values.reduce((left, right) => left | right),
  bxor: (...values) => values.reduce((left, right) => left ^ right),
  lshift: (value = 0, count = 0) => value << count,
  rshift: (value = 0, count = 0) => value >>> count,
  arshift: (value = 0, count = 0) => value >> count,
}

/** Opens what a script may use: the base, table, string and math libraries and `bit`, but no files and no system. */
export function openLibraries(state: LuaState): void {
  const { luaopen_base, luaopen_table, luaopen_string, luaopen_math } = lualib
  const libraries = { _G: luaopen_base, table: luaopen_table, string: luaopen_string, math: luaopen_math }
  for (const [name, open] of Object.entries(libraries)) {
    lauxlib.luaL_requiref(state, bytesOf(name), open, 1)
    lua.lua_pop(state, 1)
  }
  // Fengari's own return 32-bit integers, which would overflow in what is computed from them.
  lua.lua_getglobal(state, bytesOf('math'))
  for (const [name, round] of Object.entries({ floor: Math.floor, ceil: Math.ceil })) {
    setFunction(state, name, (caller) => {
      lua.lua_pushnumber(caller, round(lauxlib.luaL_checknumber(caller, 1)))
      return 1
    })
  }
  lua.lua_pop(state, 1)
  lua.lua_createtable(state, 0, 8)
  for (const [name, compute] of Object.entries(BIT_FUNCTIONS)) setFunction(state, name, onIntegers(compute))
  lua.lua_setglobal(state, bytesOf('bit'))
}

function onIntegers(compute: (...values: number[]) => number): (caller: LuaState) => number {
  return (caller) => {
    const count = Math.max(1, lua.lua_gettop(caller))
    const values = Array.from({ length: count }, (_, index) => {
      return Number(BigInt.asIntN(32, BigInt(Math.round(lauxlib.luaL_checknumber(caller, index + 1)))))
    })
    lua.lua_pushnumber(caller, compute(...values) | 0)
    return 1
  }
}
