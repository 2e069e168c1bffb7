// Checks what official clients get by `fetch` against the contract, as `send` does for the tests' own requests.
import { checkContract } from './contract.ts'

const CHECKED = Symbol.for('headgate.checked-fetch')

type CheckedFetch = typeof fetch & { [CHECKED]?: true }

if (!(globalThis.fetch as CheckedFetch)[CHECKED]) {
  const plain = globalThis.fetch
  const checked: CheckedFetch = async (input, init) => {
    const answer = await plain(input, init)
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') ?? false
    if (isJson && answer.body !== null && new URL(answer.url).hostname === '127.0.0.1') {
      const method = init?.method ?? (input instanceof Request ? input.method : 'GET')
      const text = await answer.clone().text()
      checkContract(method.toUpperCase(), answer.url, answer.status, JSON.parse(text))
    }
    return answer
  }
  checked[CHECKED] = true
  globalThis.fetch = checked
}
