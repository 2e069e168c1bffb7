import { invalidRequest } from '../../../lib/api-error.ts'
import { isObject, isPresent, type Json, numberOf } from '../../protocols/json.ts'

/**
 * Readers of members with unchecked types. Each throws ApiError invalid_request with the place of a value of the wrong
 * type. The optional ones take null for absent.
 */

const wrong = (place: string, expected: string) => invalidRequest(`${place}: Input should be ${expected}.`)

export function textAt(value: unknown, place: string): string {
  if (typeof value === 'string') return value
  throw wrong(place, 'a string')
}

/** A name or an id: a string that is not empty. */
export function nameAt(value: unknown, place: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw wrong(place, 'a string of at least one character')
}

export function objectAt(value: unknown, place: string): Json {
  if (isObject(value)) return value
  throw wrong(place, 'an object')
}

/** @returns the objects of a list, each with its place. */
export function objectsAt(value: unknown, place: string): Array<{ value: Json; place: string }> {
  if (!Array.isArray(value)) throw wrong(place, 'an array')
  return value.map((each, index) => ({
    value: objectAt(each, `${place}[${index}]`),
    place: `${place}[${index}]`,
  }))
}

export const optionalText = (value: unknown, place: string): string | undefined =>
  isPresent(value) ? textAt(value, place) : undefined

export const optionalObject = (value: unknown, place: string): Json | undefined =>
  isPresent(value) ? objectAt(value, place) : undefined

export function optionalFlag(value: unknown, place: string): boolean | undefined {
  if (!isPresent(value)) return undefined
  if (typeof value === 'boolean') return value
  throw wrong(place, 'a boolean')
}

export function optionalNumber(value: unknown, place: string): number | undefined {
  if (!isPresent(value)) return undefined
  const number = numberOf(value)
  if (number !== undefined) return number
  throw wrong(place, 'a number')
}
