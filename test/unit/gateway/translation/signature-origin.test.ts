import { describe, expect, it } from 'vitest'
import { signatureOrigin } from '../../../../src/gateway/translation/signature-origin.ts'

describe('the origin of a signature', () => {
  it.each([
    'claude-sonnet-4-5',
    'Claude-Opus-4',
    'us.anthropic.claude-sonnet-4-20250514-v1:0',
    'anthropic/claude-3.7-sonnet',
    'claude-opus-4@20250514',
  ])('is Claude wherever it is served: %s', (model) => {
    expect(signatureOrigin('messages', model, 'p')).toBe('messages:claude')
    expect(signatureOrigin('chat_completions', model, 'p')).toBe('chat_completions:claude')
  })

  it('is one model at one provider for Gemini, which refuses signatures of its other models', () => {
    const origin = signatureOrigin('generate_content', 'gemini-3-pro-preview', 'p')
    expect(origin).toBe('generate_content:gemini-3-pro-preview@p')
    expect(signatureOrigin('generate_content', 'gemini-3-flash', 'p')).not.toBe(origin)
    expect(signatureOrigin('generate_content', 'gemini-3-pro-preview', 'q')).not.toBe(origin)
  })

  it('is a family at one provider for all others', () => {
    const origin = signatureOrigin('messages', 'deepseek-reasoner', 'p')
    expect(signatureOrigin('messages', 'vendor/deepseek-chat', 'p')).toBe(origin)
    expect(signatureOrigin('messages', 'deepseek-reasoner', 'q')).not.toBe(origin)
    expect(signatureOrigin('messages', 'kimi-k2', 'p')).not.toBe(origin)
    expect(signatureOrigin('messages', 'claudette-1', 'p')).not.toBe('messages:claude')
    expect(signatureOrigin('messages', '1234', 'p')).toBe('messages:unnamed@p')
  })
})
