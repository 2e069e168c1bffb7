import { createRequire } from 'node:module'

/**
 * The part of fengari (a Lua 5.3 in JavaScript, https://github.com/fengari-lua/fengari) that is used here, with its
 * numbers made those of Lua 5.1, which Redis has: every number is a double. Fengari's own integers have 32 bits, so
 * that `1000000 * 3600` would wrap around without an error.
 */

/** A Lua state or thread; opaque. */
export type LuaState = { readonly luaState: unique symbol }
/** A string of bytes as fengari has it. */
type LuaBytes = Uint8Array
type LuaFunction = (state: LuaState) => number

interface LuaApi {
  readonly LUA_OK: number
  readonly LUA_REGISTRYINDEX: number
  readonly LUA_TNIL: number
  readonly LUA_TBOOLEAN: number
  readonly LUA_TNUMBER: number
  readonly LUA_TSTRING: number
  readonly LUA_TTABLE: number
  lua_createtable(state: LuaState, arraySize: number, recordSize: number): void
  lua_error(state: LuaState): never
  lua_getfield(state: LuaState, index: number, name: LuaBytes): number
  lua_getglobal(state: LuaState, name: LuaBytes): number
  lua_gettop(state: LuaState): number
  lua_pcall(state: LuaState, argumentCount: number, resultCount: number, handler: number): number
  lua_pop(state: LuaState, count: number): void
  lua_pushboolean(state: LuaState, value: boolean): void
  lua_pushcfunction(state: LuaState, value: LuaFunction): void
  lua_pushlstring(state: LuaState, bytes: LuaBytes, length: number): void
  lua_pushnumber(state: LuaState, value: number): void
  lua_rawgeti(state: LuaState, index: number, position: number): number
  lua_rawseti(state: LuaState, index: number, position: number): void
  lua_setfield(state: LuaState, index: number, name: LuaBytes): void
  lua_setglobal(state: LuaState, name: LuaBytes): void
  lua_settop(state: LuaState, index: number): void
  lua_toboolean(state: LuaState, index: number): boolean
  lua_tonumber(state: LuaState, index: number): number
  lua_tolstring(state: LuaState, index: number): LuaBytes | null
  lua_type(state: LuaState, index: number): number
}

interface LuaAuxiliary {
  luaL_newstate(): LuaState
  luaL_loadbuffer(state: LuaState, bytes: LuaBytes, length: number, name: LuaBytes): number
  luaL_ref(state: LuaState, index: number): number
  luaL_requiref(state: LuaState, name: LuaBytes, open: LuaFunction, global: number): void
  luaL_checknumber(state: LuaState, position: number): number
}

interface Fengari {
  readonly lua: LuaApi
  readonly lauxlib: LuaAuxiliary
  readonly lualib: Record<'luaopen_base' | 'luaopen_table' | 'luaopen_math', LuaFunction>
}

/** A value cell inside fengari. */
interface LuaCell {
  readonly value: number
  ttisinteger(): boolean
  setfltvalue(value: number): void
}

interface ObjectModule {
  luaO_str2num(text: LuaBytes, cell: LuaCell): number
}

const require = createRequire(import.meta.url)

export const { lua, lauxlib, lualib } = require('fengari') as Fengari

const objects = require('fengari/src/lobject.js') as ObjectModule
const readNumber = objects.luaO_str2num
objects.luaO_str2num = (text, cell) => {
  const length = readNumber(text, cell)
  if (length > 0 && cell.ttisinteger()) cell.setfltvalue(cell.value)
  return length
}

/** A JavaScript string of bytes (Latin-1) as Lua's. */
export const bytesOf = (text: string): LuaBytes => new Uint8Array(Buffer.from(text, 'latin1'))

/** Lua's string as a JavaScript string of bytes (Latin-1). */
export const luaText = (bytes: LuaBytes | null): string => Buffer.from(bytes ?? []).toString('latin1')

/** Pushes a string of bytes. */
export function pushText(state: LuaState, text: string): void {
  const bytes = bytesOf(text)
  lua.lua_pushlstring(state, bytes, bytes.length)
}

/** Sets a field of the table on top of the stack to a function. */
export function setFunction(state: LuaState, name: string, body: LuaFunction): void {
  lua.lua_pushcfunction(state, body)
  lua.lua_setfield(state, -2, bytesOf(name))
}
