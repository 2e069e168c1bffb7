import { createRequire } from 'node:module'

/**
 * The part of fengari (a Lua 5.3 in JavaScript, https://github.com/fengari-lua/fengari) that is used here, with its
 * numbers made those of Lua 5.1, which Redis has: every number is a double and prints with "%.14g". Fengari's own
 * integers have 32 bits, so that `1000000 * 3600` would wrap around without a word.
 */

/** A Lua state or thread; opaque. */
export type LuaState = { readonly luaState: unique symbol }
/** A string of bytes as fengari has it. */
export type LuaBytes = Uint8Array
type LuaFunction = (state: LuaState) => number

interface LuaApi {
  readonly LUA_OK: number
  readonly LUA_REGISTRYINDEX: number
  readonly LUA_MASKCOUNT: number
  readonly LUA_TNIL: number
  readonly LUA_TBOOLEAN: number
  readonly LUA_TNUMBER: number
  readonly LUA_TSTRING: number
  readonly LUA_TTABLE: number
  lua_absindex(state: LuaState, index: number): number
  lua_createtable(state: LuaState, arraySize: number, recordSize: number): void
  lua_error(state: LuaState): never
  lua_getfield(state: LuaState, index: number, name: LuaBytes): number
  lua_getglobal(state: LuaState, name: LuaBytes): number
  lua_gettop(state: LuaState): number
  lua_next(state: LuaState, index: number): number
  lua_pcall(state: LuaState, argumentCount: number, resultCount: number, handler: number): number
  lua_pop(state: LuaState, count: number): void
  lua_pushboolean(state: LuaState, value: boolean): void
  lua_pushcfunction(state: LuaState, value: LuaFunction): void
  lua_pushlightuserdata(state: LuaState, value: object): void
  lua_pushlstring(state: LuaState, bytes: LuaBytes, length: number): void
  lua_pushnil(state: LuaState): void
  lua_pushnumber(state: LuaState, value: number): void
  lua_rawgeti(state: LuaState, index: number, position: number): number
  lua_rawseti(state: LuaState, index: number, position: number): void
  lua_rawset(state: LuaState, index: number): void
  lua_rawlen(state: LuaState, index: number): number
  lua_pushglobaltable(state: LuaState): void
  lua_setfield(state: LuaState, index: number, name: LuaBytes): void
  lua_setglobal(state: LuaState, name: LuaBytes): void
  lua_sethook(state: LuaState, hook: LuaFunction | null, mask: number, count: number): void
  lua_settop(state: LuaState, index: number): void
  lua_toboolean(state: LuaState, index: number): boolean
  lua_tonumber(state: LuaState, index: number): number
  lua_tolstring(state: LuaState, index: number): LuaBytes | null
  lua_touserdata(state: LuaState, index: number): unknown
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
  readonly lualib: Record<'luaopen_base' | 'luaopen_table' | 'luaopen_string' | 'luaopen_math', LuaFunction>
}

/** A value cell inside fengari. */
interface LuaCell {
  readonly value: number
  ttisinteger(): boolean
  setfltvalue(value: number): void
  setsvalue(value: unknown): void
}

interface ObjectModule {
  luaO_str2num(text: LuaBytes, cell: LuaCell): number
  luaO_tostring(state: LuaState, cell: LuaCell): void
}

const require = createRequire(import.meta.url)
const fengari = require('fengari') as Fengari
const objects = require('fengari/src/lobject.js') as ObjectModule
const strings = require('fengari/src/lstring.js') as { luaS_new(state: LuaState, bytes: LuaBytes): unknown }

export const { lua, lauxlib, lualib } = fengari

const readNumber = objects.luaO_str2num
objects.luaO_str2num = (text, cell) => {
  const length = readNumber(text, cell)
  if (length > 0) {
    if (cell.ttisinteger()) cell.setfltvalue(cell.value)
    return length
  }
  // C's strtod, which Lua 5.1 uses, also knows these words.
  const [, sign, name] = /^\s*([+-]?)(inf(?:inity)?|nan)\s*$/i.exec(textOf(text)) ?? []
  if (name === undefined) return 0
  const value = /^n/i.test(name) ? Number.NaN : Number.POSITIVE_INFINITY
  cell.setfltvalue(sign === '-' ? -value : value)
  return text.length + 1
}
objects.luaO_tostring = (state, cell) => {
  cell.setsvalue(strings.luaS_new(state, bytesOf(printNumber(cell.value))))
}

/** A JavaScript string of bytes (Latin-1) as Lua's. */
export function bytesOf(text: string): LuaBytes {
  return new Uint8Array(Buffer.from(text, 'latin1'))
}

/** Lua's string as a JavaScript string of bytes (Latin-1). */
export function textOf(bytes: LuaBytes | null): string {
  return bytes === null ? '' : Buffer.from(bytes).toString('latin1')
}

/** Significant digits that Lua prints. */
const DIGITS = 14

/** Prints a number as C's "%.14g". */
export function printNumber(value: number): string {
  if (Number.isNaN(value)) return 'nan'
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf'
  if (Object.is(value, -0)) return '-0'
  if (Number.isInteger(value) && Math.abs(value) < 10 ** DIGITS) return String(value)
  const [mantissa = '', exponent = '0'] = roundToDigits(value)
    .toExponential(DIGITS - 1)
    .split('e')
  const power = Number(exponent)
  const trim = (digits: string): string => (digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits)
  if (power >= -4 && power < DIGITS)
    return trim(roundToDigits(value).toFixed(Math.min(100, DIGITS - 1 - power)))
  return `${trim(mantissa)}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/** C rounds what lies exactly between two results to the even digit; JavaScript rounds it up. */
function roundToDigits(value: number): number {
  const exact = value.toExponential(60)
  const [mantissa = '', exponent = ''] = exact.split('e')
  const digits = mantissa.replace(/[-.]/g, '')
  const isTie = /^50*$/.test(digits.slice(DIGITS))
  if (!isTie || Number(digits[DIGITS - 1]) % 2 === 1) return value
  const kept = `${digits.slice(0, 1)}.${digits.slice(1, DIGITS)}`
  return Number(`${value < 0 ? '-' : ''}${kept}e${exponent}`)
}

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
