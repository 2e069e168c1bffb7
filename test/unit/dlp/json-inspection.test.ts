import { describe, expect, it } from 'vitest'
import { Inspection, type Replacement, type TextEngine } from '../../../src/dlp/inspection.ts'
import { inspectJson } from '../../../src/dlp/json-inspection.ts'
import { joinBytes } from '../../../src/lib/byte-edits.ts'
import { JsonSyntaxError } from '../../../src/lib/json-visitor.ts'
import { drained } from '../../../src/lib/slices.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const SECRET = '4111111111111111'

/** Replaces the secret in every text, and records the texts. */
function engineFor(seen: Array<{ text: string; kind: string | undefined }>): TextEngine {
  return {
    policyVersion: 'test',
    inspect(field, contents): Replacement | null {
      const text = decoder.decode(contents)
      seen.push({ text, kind: field.kind })
      if (!text.includes(SECRET)) return null
      const replaced = encoder.encode(text.replaceAll(SECRET, '[card]'))
      return { contents: replaced, released: contents.length - SECRET.length, withheld: SECRET.length }
    },
    findings: () => [],
  }
}

function inspected(json: string) {
  const seen: Array<{ text: string; kind: string | undefined }> = []
  const inspection = new Inspection(engineFor(seen))
  const { pieces } = drained(inspectJson(inspection, encoder.encode(json), 'tool_result'))
  return { text: decoder.decode(joinBytes(pieces)), seen, counts: inspection.counts }
}

describe('JSON of one direction', () => {
  it('shows texts, names and numbers at any depth', () => {
    const { seen } = inspected('{"a":[{"b c":"text"}],"n":12345678901,"t":true}')
    expect(seen.map(({ text }) => text).sort()).toEqual(['12345678901', 'a', 'b c', 'n', 't', 'text'])
    expect(new Set(seen.map(({ kind }) => kind))).toEqual(new Set(['tool_result']))
  })

  it('replaces what is found, a number by a string, and keeps the rest byte for byte', () => {
    const source = `{ "x" : "is ${SECRET}" ,"${SECRET}":1,"y":[${SECRET}, 1.50e3]}`
    const { text } = inspected(source)
    expect(text).toBe('{ "x" : "is [card]" ,"[card]":1,"y":["[card]", 1.50e3]}')
    expect(JSON.parse(text)).toEqual({ x: 'is [card]', '[card]': 1, y: ['[card]', 1500] })
  })

  it('counts every byte once', () => {
    const source = `{"x":"${SECRET} and more","n":7}`
    const { counts } = inspected(source)
    expect(counts.inspected + counts.uninspected).toBe(source.length)
    expect(counts.released + counts.withheld).toBe(source.length)
    expect(counts.withheld).toBe(SECRET.length)
  })

  it.each(['"text"', '7', 'null', '[]', '{}'])('takes %s', (json) => {
    expect(inspected(json).text).toBe(json)
  })

  it('refuses what is not JSON', () => {
    expect(() => inspected('{"x":')).toThrow(JsonSyntaxError)
  })
})
