import { useState } from 'react'
import { Button } from './button.tsx'
import styles from './copyable.module.css'
import { TEXT } from './text.ts'

/** A text in a fixed-width face with a button that copies it. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState<string | null>(null)
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(text))
  return (
    <div>
      <pre className={styles.sample}>{text}</pre>
      <Button look="plain" onClick={copy} aria-label={`${TEXT.copy}: ${label}`}>
        {copied === text ? TEXT.copied : TEXT.copy}
      </Button>
    </div>
  )
}
