import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, it } from 'vitest'

// What the script has is read and run by every isolate that starts, whether or not a call needs it.

// About 330,000 of them are the library of WebAuthn with its certificates and ASN.1, read with the script; the first sign-in evaluates it.
// 103,000 are the client of OpenID Connect, which the first sign-in with an identity provider evaluates.
// 80,000 are the transports of vendors, the table of makers, and the third and fourth protocol of models.
// 60,000 are retention, erasure and export of people, and the check and repair of records after a restore.
const MOST_BYTES = 3_000_000

it('has no more than the gateway needs when it starts', () => {
  const script = join(inject('bundleDirectory'), 'gateway.js')
  const { sources } = JSON.parse(readFileSync(`${script}.map`, 'utf8')) as { sources: string[] }
  expect(sources.length).toBeGreaterThan(500)
  // Texts of errors in all languages come with a schema library that is imported as one object.
  expect(sources.filter((source) => /\/zod\/v4\/locales\//.test(source))).toEqual([
    expect.stringMatching(/\/locales\/en\.js$/),
  ])
  // Builds the schemas of all messages of MCP.
  expect(sources.filter((source) => source.includes('shimsWorkerd'))).toEqual([])
  expect(readFileSync(script).length).toBeLessThan(MOST_BYTES)
})
