// node scripts/local/qstash/main.ts --port 8080 --current-key … --next-key … --data .headgate/qstash.jsonl
import { OptionError } from '../../node/start-error.ts'
import { runAsProcess } from '../stand-in-process.ts'
import { startQstash } from './start.ts'

await runAsProcess(
  'local qstash',
  {
    data: { type: 'string' },
    token: { type: 'string' },
    'current-key': { type: 'string' },
    'next-key': { type: 'string' },
    control: { type: 'boolean' },
  },
  async (values, port) => {
    const { data, control } = values
    const { QSTASH_TOKEN, QSTASH_CURRENT_SIGNING_KEY, QSTASH_NEXT_SIGNING_KEY } = process.env
    const token = values.token ?? QSTASH_TOKEN
    const currentSigningKey = values['current-key'] ?? QSTASH_CURRENT_SIGNING_KEY
    const nextSigningKey = values['next-key'] ?? QSTASH_NEXT_SIGNING_KEY
    // No default: a published key protects nothing.
    if (typeof currentSigningKey !== 'string' || typeof nextSigningKey !== 'string') {
      throw new OptionError(
        '--current-key and --next-key (or QSTASH_CURRENT_SIGNING_KEY, QSTASH_NEXT_SIGNING_KEY) are needed',
      )
    }
    return startQstash({
      port,
      control: control === true,
      currentSigningKey,
      nextSigningKey,
      ...(typeof token === 'string' && { token }),
      ...(typeof data === 'string' && { file: data }),
    })
  },
)
