import { RedisError, type Reply, StatusReply } from '../../node/redis/reply.ts'
import { bytesOf, type LuaState, lauxlib, lua, lualib, luaText, pushText, setFunction } from './fengari.ts'

/**
 * Runs Lua scripts as Redis does, as far as those of `@upstash/ratelimit` go: `redis.call`, KEYS, ARGV, the base, table
 * and math libraries. Redis has more: `redis.pcall`, `cjson`, `bit`, and Lua 5.1's way to print a number.
 */
export class LuaEngine {
  readonly #state: LuaState = lauxlib.luaL_newstate()
  readonly #compiled = new Map<string, number>()

  /** @param runCommand what `redis.call` runs */
  constructor(runCommand: (words: string[]) => Reply) {
    openLibraries(this.#state)
    lua.lua_createtable(this.#state, 0, 1)
    setFunction(this.#state, 'call', (caller) => callCommand(caller, runCommand))
    lua.lua_setglobal(this.#state, bytesOf('redis'))
    this.evaluate('unpack = table.unpack dofile, loadfile, print = nil', [], [])
  }

  /**
   * Runs a script.
   *
   * @param source Lua source, without a shebang line
   * @throws RedisError if it or a command of it fails
   */
  evaluate(source: string, keys: string[], parameters: string[]): Reply {
    const top = lua.lua_gettop(this.#state)
    try {
      const reference = this.#compile(source)
      for (const [name, values] of Object.entries({ KEYS: keys, ARGV: parameters })) {
        pushReply(this.#state, values)
        lua.lua_setglobal(this.#state, bytesOf(name))
      }
      lua.lua_rawgeti(this.#state, lua.LUA_REGISTRYINDEX, reference)
      if (lua.lua_pcall(this.#state, 0, 1, 0) === lua.LUA_OK) return toReply(this.#state)
      const message = luaText(lua.lua_tolstring(this.#state, -1))
      throw new RedisError(/^[A-Z]+ /.test(message) ? message : `ERR ${message}`)
    } finally {
      lua.lua_settop(this.#state, top)
    }
  }

  #compile(source: string): number {
    const known = this.#compiled.get(source)
    if (known !== undefined) return known
    const bytes = bytesOf(source)
    if (lauxlib.luaL_loadbuffer(this.#state, bytes, bytes.length, bytesOf('@user_script')) !== lua.LUA_OK) {
      const reason = luaText(lua.lua_tolstring(this.#state, -1))
      throw new RedisError(`ERR Error compiling script (new function): ${reason}`)
    }
    const reference = lauxlib.luaL_ref(this.#state, lua.LUA_REGISTRYINDEX)
    this.#compiled.set(source, reference)
    return reference
  }
}

/** Opens what a script may use: no files and no system. */
function openLibraries(state: LuaState): void {
  const { luaopen_base, luaopen_table, luaopen_math } = lualib
  for (const [name, open] of Object.entries({ _G: luaopen_base, table: luaopen_table, math: luaopen_math })) {
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
}

function callCommand(caller: LuaState, runCommand: (words: string[]) => Reply): number {
  try {
    pushReply(caller, runCommand(readCommandWords(caller)))
    return 1
  } catch (error) {
    if (!(error instanceof RedisError)) throw error
    pushText(caller, error.message)
  }
  return lua.lua_error(caller)
}

function readCommandWords(state: LuaState): string[] {
  return Array.from({ length: lua.lua_gettop(state) }, (_, index) => {
    const type = lua.lua_type(state, index + 1)
    if (type === lua.LUA_TNUMBER) return String(lua.lua_tonumber(state, index + 1))
    if (type === lua.LUA_TSTRING) return luaText(lua.lua_tolstring(state, index + 1))
    throw new RedisError('ERR Lua redis lib command arguments must be strings or integers')
  })
}

/** Reply to Lua: nothing is false, a status is a table with `ok`. https://redis.io/docs/latest/develop/interact/programmability/lua-api/ */
function pushReply(state: LuaState, reply: Reply): void {
  if (reply === null) lua.lua_pushboolean(state, false)
  else if (typeof reply === 'string') pushText(state, reply)
  else if (typeof reply === 'number') lua.lua_pushnumber(state, reply)
  else if (reply instanceof StatusReply) {
    lua.lua_createtable(state, 0, 1)
    pushText(state, reply.text)
    lua.lua_setfield(state, -2, bytesOf('ok'))
  } else {
    lua.lua_createtable(state, reply.length, 0)
    reply.forEach((item, index) => {
      pushReply(state, item)
      lua.lua_rawseti(state, -2, index + 1)
    })
  }
}

/**
 * The value on top of the stack as a reply: numbers lose their fraction, true is 1, false and nil are nothing, a table
 * with `ok` is a status, an array ends at its first nil.
 */
function toReply(state: LuaState): Reply {
  const type = lua.lua_type(state, -1)
  if (type === lua.LUA_TSTRING) return luaText(lua.lua_tolstring(state, -1))
  if (type === lua.LUA_TNUMBER) return Math.trunc(lua.lua_tonumber(state, -1))
  if (type === lua.LUA_TBOOLEAN) return lua.lua_toboolean(state, -1) ? 1 : null
  if (type !== lua.LUA_TTABLE) return null
  lua.lua_getfield(state, -1, bytesOf('ok'))
  const status = lua.lua_tolstring(state, -1)
  lua.lua_pop(state, 1)
  if (status !== null) return new StatusReply(luaText(status))
  const items: Reply[] = []
  for (let position = 1; ; position++) {
    lua.lua_rawgeti(state, -1, position)
    const isEnd = lua.lua_type(state, -1) === lua.LUA_TNIL
    if (!isEnd) items.push(toReply(state))
    lua.lua_pop(state, 1)
    if (isEnd) return items
  }
}
