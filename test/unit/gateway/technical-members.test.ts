import { describe, expect, it } from 'vitest'
import {
  CHAT_STRUCTURE,
  ITEM_STRUCTURE,
  ITEMS_STRUCTURE,
  isIdentifier,
  isWord,
  MESSAGES_STRUCTURE,
  technicalKind,
} from '../../../src/gateway/protocols/technical-members.ts'

/** A path as text, and what stands there. */
const kindAt = (root: typeof MESSAGES_STRUCTURE, place: string) => {
  const path = place.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))
  return technicalKind(root, path, path.findLast((part) => typeof part === 'string') as string)
}

describe('what a string of a request is by its place', () => {
  it.each([
    ['messages.0.tool_calls.1.extra_content.google.thought_signature', 'fixed'],
    ['messages.0.extra_content.google.thought_signature', null],
    ['messages.0.tool_calls.1.thought_signature', null],
  ] as const)('of a signed call: %s', (place, kind) => {
    expect(kindAt(CHAT_STRUCTURE, place)).toBe(kind)
  })

  it.each([
    ['model', 'ours'],
    ['messages.0.role', 'word'],
    ['messages.0.content.1.type', 'word'],
    ['messages.0.content.1.cache_control.ttl', 'word'],
    ['messages.0.content.1.image_url.detail', 'word'],
    ['messages.0.content.1.input_audio.format', 'word'],
    ['messages.0.content.1.source.media_type', 'word'],
    ['messages.0.content.1.content.0.content.0.source.content.0.type', 'word'],
    ['messages.0.content.1.id', 'fixed'],
    ['messages.0.content.1.tool_use_id', 'fixed'],
    ['messages.0.content.1.signature', 'fixed'],
    ['messages.0.content.1.content.0.encrypted_content', 'fixed'],
    ['messages.0.id', null],
    ['system.0.type', 'word'],
    ['system.0.id', null],
    ['tools.0.custom.format.type', 'word'],
    ['response_format.type', 'word'],
    ['id', null],
    ['messages.0.signature', null],
    ['messages.0.role.0', null],
    ['messages.0.ttl', null],
    ['messages.0.vendor.role', null],
    ['messages.0.content.1.vendor.type', null],
    ['metadata.id', null],
    ['prompt.id', null],
    ['container.id', null],
    ['call_id', null],
    ['constructor.type', null],
    ['messages.0.content.0.text', null],
  ] as const)('of messages: %s', (place, kind) => {
    expect(kindAt(MESSAGES_STRUCTURE, place)).toBe(kind)
  })

  it.each([
    ['messages.0.content.1.type', 'word'],
    ['messages.0.content.1.image_url.detail', 'word'],
    ['messages.0.content.1.input_audio.format', 'word'],
    ['messages.0.content.1.signature', 'fixed'],
    ['messages.0.tool_calls.2.id', 'fixed'],
    ['messages.0.tool_call_id', 'fixed'],
    ['messages.0.audio.id', 'fixed'],
    ['messages.0.reasoning_details.0.signature', 'fixed'],
    ['messages.0.id', null],
    ['messages.0.content.1.id', null],
    ['messages.0.content.1.tool_use_id', null],
    ['prediction.content.0.id', null],
  ] as const)('of chat completions: %s', (place, kind) => {
    expect(kindAt(CHAT_STRUCTURE, place)).toBe(kind)
  })

  it.each([
    ['id', 'ours'],
    ['call_id', 'fixed'],
    ['content.0.detail', 'word'],
    ['content.0.id', null],
    ['content.0.file_id', null],
    ['output.0.id', null],
  ] as const)('of an item: %s', (place, kind) => {
    expect(kindAt(ITEM_STRUCTURE, place)).toBe(kind)
  })

  it.each([
    ['input.0.type', 'word'],
    ['input.0.content.0.id', null],
    ['input.0.output.0.id', null],
    ['input.0.call_id', 'fixed'],
    ['input.0.content.0.detail', 'word'],
    ['input.0.output.0.type', 'word'],
    ['input.0.signature', 'ours'],
    ['input.0.content.0.call_id', null],
    ['input.0.vendor.id', null],
    ['prompt.id', null],
    ['messages.0.role', null],
  ] as const)('of items: %s', (place, kind) => {
    expect(kindAt(ITEMS_STRUCTURE, place)).toBe(kind)
  })
})

it.each([
  ['text', true],
  ['web_search_20250305', true],
  ['image/svg+xml', true],
  ['5m', true],
  ['', true],
  ['Some one', false],
  ['a@b.example', false],
  ['KX-1', false],
  ['a4111111111111111', false],
  ['é', false],
  ['te\\u0078t', false],
  ['a'.repeat(81), false],
])('whether %s is a word of a protocol', (text, expected) => {
  const bytes = new TextEncoder().encode(`"${text}"`)
  expect(isWord(bytes, 1, bytes.length - 1)).toBe(expected)
})

it.each([
  ['call_9-aB.c:0|d=', true],
  ['YWJj+/8=', true],
  ['YWJj\\/8=', true],
  ['functions.find:0', true],
  ['4111111111111111', true],
  ['', true],
  ['of Ada', false],
  ['ada@example.com', false],
  ['a\\u0040b', false],
  ['"', false],
  ['é', false],
])('whether %s has the form of an identifier', (text, expected) => {
  const bytes = new TextEncoder().encode(`"${text}"`)
  expect(isIdentifier(bytes, 1, bytes.length - 1)).toBe(expected)
})
