// node scripts/local/redis/main.ts --port 8079 --data .headgate/redis.jsonl
// LOCAL_REDIS_TOKEN=… node scripts/local/redis/main.ts --port 8079 --redis-url redis://127.0.0.1:6379
import { OptionError } from '../../node/start-error.ts'
import { runAsProcess } from '../stand-in-process.ts'
import { startRedis } from './start.ts'

await runAsProcess(
  'local redis',
  {
    data: { type: 'string' },
    'redis-url': { type: 'string' },
    control: { type: 'boolean' },
  },
  async (values, port) => {
    const { data, 'redis-url': redisUrl, control } = values
    // The token is a variable, because every process can read the command line.
    const token = process.env.LOCAL_REDIS_TOKEN
    if (redisUrl !== undefined && (data !== undefined || control === true)) {
      throw new OptionError('--redis-url excludes --data and --control')
    }
    return startRedis({
      port,
      control: control === true,
      ...(typeof data === 'string' && { file: data }),
      ...(typeof redisUrl === 'string' && { redisUrl }),
      ...(token && { token }),
    })
  },
)
