import { bytesOf, type LuaState, lua, printNumber, pushText, setFunction, textOf } from './lua-runtime.ts'
import { toBytes, toText } from './reply.ts'

/** Stands for JSON's null inside Lua, where nil cannot be a table's value. */
const JSON_NULL = {}

/** Deepest nesting that `cjson` takes, as in Redis. */
const MAX_DEPTH = 1000

/** Registers the global `cjson` with `encode`, `decode` and `null`. */
export function registerJson(state: LuaState): void {
  lua.lua_createtable(state, 0, 3)
  lua.lua_pushlightuserdata(state, JSON_NULL)
  lua.lua_setfield(state, -2, bytesOf('null'))
  setFunction(state, 'decode', (caller) => {
    const text = toText(textOf(lua.lua_tolstring(caller, 1)))
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      pushText(caller, 'Expected value but found invalid token at character 1')
      return lua.lua_error(caller)
    }
    pushJson(caller, value)
    return 1
  })
  setFunction(state, 'encode', (caller) => {
    let text: string
    try {
      text = encode(caller, 1, 0)
    } catch (error) {
      pushText(caller, error instanceof Error ? error.message : String(error))
      return lua.lua_error(caller)
    }
    pushText(caller, text)
    return 1
  })
  lua.lua_setglobal(state, bytesOf('cjson'))
}

function pushJson(state: LuaState, value: unknown): void {
  if (value === null) lua.lua_pushlightuserdata(state, JSON_NULL)
  else if (typeof value === 'boolean') lua.lua_pushboolean(state, value)
  else if (typeof value === 'number') lua.lua_pushnumber(state, value)
  else if (typeof value === 'string') pushText(state, toBytes(value))
  else if (Array.isArray(value)) {
    lua.lua_createtable(state, value.length, 0)
    value.forEach((item, index) => {
      pushJson(state, item)
      lua.lua_rawseti(state, -2, index + 1)
    })
  } else {
    lua.lua_createtable(state, 0, 0)
    for (const [name, item] of Object.entries(value as object)) {
      pushText(state, toBytes(name))
      pushJson(state, item)
      lua.lua_rawset(state, -3)
    }
  }
}

function encode(state: LuaState, index: number, depth: number): string {
  if (depth > MAX_DEPTH) throw new Error('Cannot serialise, excessive depth')
  const type = lua.lua_type(state, index)
  if (type === lua.LUA_TNIL || lua.lua_touserdata(state, index) === JSON_NULL) return 'null'
  if (type === lua.LUA_TBOOLEAN) return String(lua.lua_toboolean(state, index))
  if (type === lua.LUA_TNUMBER) return encodeNumber(lua.lua_tonumber(state, index))
  if (type === lua.LUA_TSTRING) return quote(textOf(lua.lua_tolstring(state, index)))
  if (type !== lua.LUA_TTABLE) throw new Error('Cannot serialise value: type not supported')
  return encodeTable(state, lua.lua_absindex(state, index), depth)
}

function encodeNumber(value: number): string {
  if (!Number.isFinite(value)) throw new Error('Cannot serialise number: must not be NaN or Inf')
  return printNumber(value)
}

/** cjson escapes the slash as well. */
function quote(bytes: string): string {
  return toBytes(JSON.stringify(toText(bytes)).replaceAll('/', '\\/'))
}

/** A table whose keys are exactly 1 to n becomes an array; any other, the empty one included, an object. */
function encodeTable(state: LuaState, index: number, depth: number): string {
  const length = lua.lua_rawlen(state, index)
  const members: string[] = []
  let isArray = length > 0
  lua.lua_pushnil(state)
  while (lua.lua_next(state, index) !== 0) {
    const keyType = lua.lua_type(state, -2)
    if (keyType === lua.LUA_TNUMBER) {
      const key = lua.lua_tonumber(state, -2)
      if (!Number.isInteger(key) || key < 1 || key > length) isArray = false
      members.push(`"${printNumber(key)}":${encode(state, -1, depth + 1)}`)
    } else if (keyType === lua.LUA_TSTRING) {
      isArray = false
      members.push(`${quote(textOf(lua.lua_tolstring(state, -2)))}:${encode(state, -1, depth + 1)}`)
    } else throw new Error('Cannot serialise table: table key must be a number or string')
    lua.lua_pop(state, 1)
  }
  if (!isArray) return `{${members.join(',')}}`
  const items: string[] = []
  for (let position = 1; position <= length; position++) {
    lua.lua_rawgeti(state, index, position)
    items.push(encode(state, -1, depth + 1))
    lua.lua_pop(state, 1)
  }
  return `[${items.join(',')}]`
}
