// What every client script has in common: the server's address, and a line of output for each step.
import assert from 'node:assert/strict'

export { assert }
export const host = '127.0.0.1'
export const port = Number(process.env.HEADGATE_PORT)

const limit = 20_000 // ms that a step may take before it counts as hanging

// step runs one step and prints "ok NAME", or "not ok NAME: why".
export async function step(name, run) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no end in sight')), limit)
  })
  try {
    await Promise.race([run(), late])
    console.log(`ok ${name}`)
  } catch (err) {
    console.log(`not ok ${name}: ${String(err.stack ?? err).replaceAll('\n', ' | ')}`)
    process.exitCode = 1
  } finally {
    clearTimeout(timer)
  }
}

// done ends the process even when a client keeps a socket open.
export function done() {
  process.exit(process.exitCode ?? 0)
}

// A value with every byte in it.
export const everyByte = Buffer.from(Array.from({ length: 256 }, (_, i) => i))

// A script that no other test uses, so that its first EVALSHA finds nothing.
export const freshScript = () => `return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1} -- ${process.pid}.${Math.random()}`
