import { createHash } from 'node:crypto'
import { registerJson } from './lua-json.ts'
import { openLibraries, PRELUDE } from './lua-libraries.ts'
import { bytesOf, type LuaState, lauxlib, lua, pushText, setFunction, textOf } from './lua-runtime.ts'
import { formatFloat, integerReply } from './numbers.ts'
import { RedisError, type Reply, StatusReply } from './reply.ts'

/** How many instructions pass between two looks at the clock. */
const HOOK_INTERVAL = 100_000

/** Runs a command for a script; `name` is in the case that the script used. */
export type ScriptCommand = (name: string, words: string[]) => Reply

/** Runs Lua scripts as Redis does: `redis.call`, `redis.pcall`, KEYS, ARGV, cjson. */
export class LuaEngine {
  readonly #state: LuaState
  readonly #compiled = new Map<string, number>()
  readonly #runCommand: ScriptCommand
  readonly #timeLimitMs: number
  #deadline = 0

  /**
   * @param runCommand what `redis.call` runs
   * @param timeLimitMs how long a script may run before it is stopped; Redis would report BUSY at that point
   */
  constructor(runCommand: ScriptCommand, timeLimitMs: number) {
    this.#runCommand = runCommand
    this.#timeLimitMs = timeLimitMs
    this.#state = lauxlib.luaL_newstate()
    openLibraries(this.#state)
    this.#registerRedis()
    registerJson(this.#state)
    this.#call(this.#compile(PRELUDE))
    lua.lua_sethook(this.#state, (caller) => this.#enforceTimeLimit(caller), lua.LUA_MASKCOUNT, HOOK_INTERVAL)
  }

  /**
   * Runs a script.
   *
   * @param source Lua source, without a shebang line
   * @throws RedisError if it does not compile, fails, or returns an error reply
   */
  evaluate(source: string, keys: string[], parameters: string[]): Reply {
    const top = lua.lua_gettop(this.#state)
    try {
      const reference = this.#compile(source)
      this.#setGlobal('KEYS', keys)
      this.#setGlobal('ARGV', parameters)
      this.#call(reference)
      return toReply(this.#state, -1)
    } finally {
      lua.lua_settop(this.#state, top)
    }
  }

  #registerRedis(): void {
    lua.lua_createtable(this.#state, 0, 16)
    setFunction(this.#state, 'call', (caller) => this.#callCommand(caller, false))
    setFunction(this.#state, 'pcall', (caller) => this.#callCommand(caller, true))
    setFunction(this.#state, 'sha1hex', (caller) => {
      const text = textOf(lua.lua_tolstring(caller, 1))
      pushText(caller, createHash('sha1').update(text, 'latin1').digest('hex'))
      return 1
    })
    lua.lua_setglobal(this.#state, bytesOf('redis'))
  }

  #callCommand(caller: LuaState, isProtected: boolean): number {
    let failure: string
    try {
      const [name, ...words] = readCommandWords(caller)
      if (name === undefined)
        throw new RedisError('ERR Please specify at least one argument for this redis.call() call')
      pushReply(caller, this.#runCommand(name, words))
      return 1
    } catch (error) {
      if (!(error instanceof RedisError)) throw error
      failure = error.message
    }
    pushErrorTable(caller, failure)
    return isProtected ? 1 : lua.lua_error(caller)
  }

  #compile(source: string): number {
    const known = this.#compiled.get(source)
    if (known !== undefined) return known
    const bytes = bytesOf(source)
    if (lauxlib.luaL_loadbuffer(this.#state, bytes, bytes.length, bytesOf('@user_script')) !== lua.LUA_OK) {
      const reason = textOf(lua.lua_tolstring(this.#state, -1))
      throw new RedisError(`ERR Error compiling script (new function): ${reason}`)
    }
    const reference = lauxlib.luaL_ref(this.#state, lua.LUA_REGISTRYINDEX)
    this.#compiled.set(source, reference)
    return reference
  }

  /** Calls a compiled chunk and leaves its result on the stack. */
  #call(reference: number): void {
    this.#deadline = performance.now() + this.#timeLimitMs
    lua.lua_rawgeti(this.#state, lua.LUA_REGISTRYINDEX, reference)
    if (lua.lua_pcall(this.#state, 0, 1, 0) === lua.LUA_OK) return
    if (lua.lua_type(this.#state, -1) === lua.LUA_TTABLE) toReply(this.#state, -1)
    throw new RedisError(`ERR ${textOf(lua.lua_tolstring(this.#state, -1))}`)
  }

  #setGlobal(name: string, values: string[]): void {
    lua.lua_pushglobaltable(this.#state)
    pushText(this.#state, name)
    pushReply(this.#state, values)
    lua.lua_rawset(this.#state, -3)
    lua.lua_pop(this.#state, 1)
  }

  #enforceTimeLimit(caller: LuaState): number {
    if (performance.now() < this.#deadline) return 0
    pushText(caller, `script ran longer than ${this.#timeLimitMs} ms`)
    return lua.lua_error(caller)
  }
}

function readCommandWords(state: LuaState): string[] {
  return Array.from({ length: lua.lua_gettop(state) }, (_, index) => {
    const type = lua.lua_type(state, index + 1)
    if (type === lua.LUA_TNUMBER) return formatFloat(lua.lua_tonumber(state, index + 1))
    if (type === lua.LUA_TSTRING) return textOf(lua.lua_tolstring(state, index + 1))
    throw new RedisError('ERR Lua redis lib command arguments must be strings or integers')
  })
}

function pushErrorTable(state: LuaState, message: string): void {
  lua.lua_createtable(state, 0, 1)
  pushText(state, message)
  lua.lua_setfield(state, -2, bytesOf('err'))
}

/** Reply to Lua: nothing is false, a status is a table with `ok`.  https://redis.io/docs/latest/develop/interact/programmability/lua-api/ */
function pushReply(state: LuaState, reply: Reply): void {
  if (reply === null) lua.lua_pushboolean(state, false)
  else if (typeof reply === 'string') pushText(state, reply)
  else if (typeof reply === 'number' || typeof reply === 'bigint') lua.lua_pushnumber(state, Number(reply))
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

/** Lua to reply: numbers lose their fraction, true is 1, false and nil are nothing, an array ends at its first nil. */
function toReply(state: LuaState, index: number): Reply {
  const type = lua.lua_type(state, index)
  if (type === lua.LUA_TSTRING) return textOf(lua.lua_tolstring(state, index))
  if (type === lua.LUA_TNUMBER) return toInteger(lua.lua_tonumber(state, index))
  if (type === lua.LUA_TBOOLEAN) return lua.lua_toboolean(state, index) ? 1 : null
  if (type !== lua.LUA_TTABLE) return null
  const table = lua.lua_absindex(state, index)
  const failure = readTextField(state, table, 'err')
  if (failure !== undefined) throw new RedisError(failure)
  const status = readTextField(state, table, 'ok')
  if (status !== undefined) return new StatusReply(status)
  const items: Reply[] = []
  for (let position = 1; ; position++) {
    lua.lua_rawgeti(state, table, position)
    if (lua.lua_type(state, -1) === lua.LUA_TNIL) {
      lua.lua_pop(state, 1)
      return items
    }
    items.push(toReply(state, -1))
    lua.lua_pop(state, 1)
  }
}

/** C's cast to a 64-bit integer, which gives the smallest one for all that does not fit. */
function toInteger(value: number): Reply {
  const fits = value > -(2 ** 63) && value < 2 ** 63
  return integerReply(fits ? BigInt(Math.trunc(value)) : -(2n ** 63n))
}

function readTextField(state: LuaState, table: number, name: string): string | undefined {
  lua.lua_getfield(state, table, bytesOf(name))
  const isText = lua.lua_type(state, -1) === lua.LUA_TSTRING
  const text = isText ? textOf(lua.lua_tolstring(state, -1)) : undefined
  lua.lua_pop(state, 1)
  return text
}
